# SPDX-License-Identifier: Apache-2.0
"""Which folder may include which, and how many files a folder may hold. docs/architecture.md explains both."""

import os
import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
INCLUDE = re.compile(r'^#include "([^"]+)"', re.MULTILINE)

# Folders on one level that do not know each other.
APART = [("agent", "daemon"), ("agent", "webhook"), ("daemon", "webhook")]


def folders_in_order(folder=""):
    """The folders as the build names them: each may include only itself and those before it."""
    order = []
    for line in (ROOT / folder / "CMakeLists.txt").read_text().splitlines():
        below = re.match(r" *add_subdirectory\((\w+)\)", line)
        if below and below.group(1) != "tests":
            order += folders_in_order(f"{folder}/{below.group(1)}".lstrip("/"))
        elif re.match(r" *(rollcall_library|add_library|target_sources)\(", line) and folder not in order:
            order.append(folder)
    return order


ORDER = list(dict.fromkeys(folders_in_order()))


def allowed(folder):
    before = set(ORDER[: ORDER.index(folder) + 1])
    top = folder.split("/")[0]
    strangers = {name for pair in APART if top in pair for name in pair} - {top}
    return {name for name in before if name.split("/")[0] not in strangers}


def sources():
    for folder in ORDER:
        for path in sorted((ROOT / folder).iterdir()):
            if path.suffix in (".cc", ".h"):
                yield folder, path


def included(path):
    """The project's own files that a file includes, by their path from the root."""
    return [name for name in INCLUDE.findall(path.read_text()) if (ROOT / name).is_file()]


def test_every_source_lies_in_a_folder_with_a_rule():
    known = {path for _, path in sources()}
    found = {
        path
        for top in {folder.split("/")[0] for folder in ORDER}
        for path in (ROOT / top).rglob("*")
        if path.suffix in (".cc", ".h")
    }
    assert found == known
    assert len(found) > 300


def test_no_program_reckons_with_the_time_zone_of_its_host():
    """Times are UTC inside, and in all that programs write: a day of the history, a silence and an alert are the same
    where a clock changes to summer time. The page alone shows the reader's own zone."""
    local = re.compile(r"\b(localtime(_r)?|mktime|strftime|LocalTimeZone|LoadTimeZone)\b")
    assert [str(path) for _, path in sources() if local.search(path.read_text())] == []


def test_no_folder_includes_a_folder_below_it():
    wrong = [
        f"{path.relative_to(ROOT)} includes {name}"
        for folder, path in sources()
        for name in included(path)
        if str(pathlib.PurePath(name).parent) not in allowed(folder)
    ]
    assert wrong == []


MOST_FILES = 60


def test_no_folder_holds_more_than_about_sixty_files():
    sizes = {}
    for folder, below, files in os.walk(ROOT):
        below[:] = [name for name in below if name not in ("build", "__pycache__") and not name.startswith(".")]
        sizes[os.path.relpath(folder, ROOT)] = len(files)
    assert set(ORDER) | {"tests/e2e/jobs", "daemon/page/src"} <= set(sizes)
    assert {folder: size for folder, size in sizes.items() if size > MOST_FILES} == {}


PURE = [folder for folder in ORDER
        if re.match(r"daemon/((model|words|rules|diagnosis)\b|report/stacks$)", folder)]
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
