# SPDX-License-Identifier: Apache-2.0
"""Which folder may include which. docs/architecture.md explains the order."""

import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
INCLUDE = re.compile(r'^#include "([^"]+)"', re.MULTILINE)

# Each folder may include itself and the folders above it in its list.
LAYERS = [
    ["interpose"],
    [
        "interpose",
        "proto",
        "security",
        "security/grpc",
        "service",
        "agent/processes",
        "agent/segments",
        "agent/symbols",
        "agent/python",
        "agent/stacks",
        "agent/host_facts",
        "agent",
    ],
    [
        "interpose",
        "proto",
        "security",
        "security/grpc",
        "service",
        "daemon/model",
        "daemon/words",
        "daemon/diagnosis/rules",
        "daemon/diagnosis",
        "daemon/page",
        "daemon/report/stacks",
        "daemon/report",
        "daemon/store",
        "daemon/fleet",
        "daemon/server/views",
        "daemon/server",
        "daemon",
        "webhook",
    ],
]
LAST = ["cli/flight_recorder", "cli/doctor", "cli"]  # may include everything above


def allowed(folder):
    for layer in LAYERS:
        if folder in layer:
            return set(layer[: layer.index(folder) + 1])
    everything = {name for layer in LAYERS for name in layer}
    return everything | set(LAST[: LAST.index(folder) + 1])


def sources():
    folders = {name for layer in LAYERS for name in layer} | set(LAST)
    for folder in sorted(folders):
        for path in sorted((ROOT / folder).glob("*.[ch]*")):
            if path.suffix in (".cc", ".h"):
                yield folder, path


def included(path):
    """The project's own files that a file includes, by their path from the root."""
    return [name for name in INCLUDE.findall(path.read_text()) if (ROOT / name).is_file()]


def test_every_source_lies_in_a_folder_with_a_rule():
    known = {path for _, path in sources()}
    found = {
        path
        for top in ("interpose", "proto", "security", "service", "agent", "daemon", "webhook", "cli")
        for path in (ROOT / top).rglob("*")
        if path.suffix in (".cc", ".h")
    }
    assert found == known
    assert len(found) > 300


def test_no_folder_includes_a_folder_below_it():
    wrong = [
        f"{path.relative_to(ROOT)} includes {name}"
        for folder, path in sources()
        for name in included(path)
        if str(pathlib.PurePath(name).parent) not in allowed(folder)
    ]
    assert wrong == []


PURE = ["daemon/model", "daemon/words", "daemon/diagnosis/rules", "daemon/diagnosis",
        "daemon/report/stacks"]
IMPURE = re.compile(r'^#include [<"](grpc|google/protobuf|rollcall/v1|spdlog|sqlite3|httplib|unistd'
                    r'|sys/|fcntl|thread|mutex|fstream|chrono|absl/time)', re.MULTILINE)


@pytest.mark.parametrize("folder", PURE)
def test_a_pure_folder_includes_no_io_no_clock_and_no_grpc(folder):
    wrong = [
        str(path.relative_to(ROOT))
        for path in sorted((ROOT / folder).glob("*"))
        if path.suffix in (".cc", ".h") and IMPURE.search(path.read_text())
    ]
    assert wrong == []


def test_no_two_files_include_each_other_directly_or_through_others():
    # A header and its .cc are one node: a cycle between two such pairs is a cycle too.
    graph = {}
    for _, path in sources():
        node = str(path.relative_to(ROOT).with_suffix(""))
        names = {str(pathlib.PurePath(name).with_suffix("")) for name in included(path)}
        graph.setdefault(node, set()).update(names - {node})
    assert cycles(graph) == []


def cycles(graph):
    """The sets of nodes that reach each other (Tarjan's algorithm), those of one node left out."""
    order, low, stack, on_stack, found = {}, {}, [], set(), []

    def visit(node):
        order[node] = low[node] = len(order)
        stack.append(node)
        on_stack.add(node)
        for following in sorted(graph.get(node, ())):
            if following not in order:
                visit(following)
                low[node] = min(low[node], low[following])
            elif following in on_stack:
                low[node] = min(low[node], order[following])
        if low[node] == order[node]:
            component = []
            while not component or component[-1] != node:
                component.append(stack.pop())
                on_stack.remove(component[-1])
            if len(component) > 1:
                found.append(sorted(component))

    for node in sorted(graph):
        if node not in order:
            visit(node)
    return found


def test_the_search_for_cycles_finds_one():
    assert cycles({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}) == [["a", "b", "c"]]
