# SPDX-License-Identifier: Apache-2.0
"""What an assistant sees of the daemon's messages (proto/rollcall/v1/query.proto, incident.proto). Pure.

Fields that these functions do not name pass through, so that an answer has what newer daemons add.
"""

from rollcall.mcp.answers import without_empty

STATES = {
    ".": "does not wait", "w": "waits in a call for others", "o": "waits on another communicator",
    "i": "is inside the communicator's creation", "d": "has left the communicator", "e": "its process exited normally",
    "x": "its process died", "g": "its process ended, exit status unknown", "s": "its host is silent",
    "?": "is alive, and not in it although others are", "-": "is in no communicator of this kind",
}
MAX_LINE = 300
MAX_INDENT = 24


def without(message, *names):
    return without_empty({name: member for name, member in message.items() if name not in names})


def job_row(job):
    return without(job, "communicators", "calls_per_second", "attempts")


def job_view(view):
    """A job, with the ranks of each state instead of a character for each rank."""
    whole = without(view, "calls_per_second", "maps")
    whole["maps"] = [{**without(one, "states"), "ranks": ranks_by_state(one.get("states", ""))}
                     for one in view.get("maps", [])]
    return whole


def state_words(character):
    if character not in "123456789":
        return STATES.get(character, f"state {character}")
    return f"is behind others by {2 ** (int(character) - 1)} calls, or more, and does not wait"


def ranks_by_state(states):
    """ "ww1" -> {"waits in a call for others": "0-1", ...}"""
    ranks = {}
    for rank, character in enumerate(states):
        ranks.setdefault(character, []).append(rank)
    return {state_words(character): as_ranges(those) for character, those in ranks.items()}


def as_ranges(numbers):
    """[0, 1, 2, 5] -> "0-2,5"; the numbers ascend."""
    runs = []
    for number in numbers:
        if runs and runs[-1][1] == number - 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)


def incident_row(incident):
    """An incident in a list: its root cause, in short."""
    cause = (incident.get("verdicts") or [{}])[0]
    names = ("cause", "certainty", "summary", "culprit_ranks", "culprit_hosts_total")
    hosts = sorted({culprit.get("host", "") for culprit in cause.get("culprits", [])})
    return {**without(incident, "verdicts", "stacks", "stack_tree", "host_facts", "versions", "report_path",
                      "rollcall_version", "host_facts_total"),
            **without_empty({name: cause.get(name) for name in names}), **without_empty({"culprit_hosts": hosts})}


def incident_view(incident):
    """An incident without its stacks, which are large; the ranks that have some instead."""
    ranks = sorted({stack.get("rank", -1) for stack in incident.get("stacks", [])})
    return {**without(incident, "stacks", "stack_tree"),
            **without_empty({"stacks_of_ranks": as_ranges(ranks)})}


def tree_lines(tree):
    """The merged stacks as lines, outermost frame first. Where they part, each branch is indented and has a +."""
    nodes = tree.get("nodes", [])
    children = {}
    for index, node in enumerate(nodes[1:], 1):
        children.setdefault(node.get("parent", 0), []).append(index)
    lines, waiting = [], branches(children.get(0, []), 0)
    while waiting:
        index, indent, mark = waiting.pop()
        lines.append(tree_line(nodes[index], "  " * min(indent, MAX_INDENT) + mark))
        waiting += branches([child for child in children.get(index, []) if child > index], indent)
    return lines


def branches(children, indent):
    """Index, indent and mark of each child, the first one last."""
    if len(children) == 1:
        return [(children[0], indent, "  " if indent else "")]
    return [(child, indent + 1, "+ ") for child in reversed(children)]


def tree_line(node, begin):
    end = f", {node['ending']} threads end here" if node.get("ending") else ""
    return f"{begin}{node.get('frame', '')}"[:MAX_LINE] + f"  [ranks {node.get('ranks', '')[:MAX_LINE]}{end}]"


class Known(dict):
    """A message for format_map(): "?" for what it lacks."""

    def __missing__(self, name):
        return "?"


def process_lines(stack):
    """The stacks of one process as lines: each thread, innermost frame first."""
    lines = ["rank {rank} on {host}, pid {pid}, taken at {taken_at}".format_map(Known(stack))]
    if stack.get("error"):
        lines.append(f"no stacks: {stack['error']}")
    for thread in stack.get("threads", []):
        lines += thread_lines(thread)
    lines += [f"it has started pid {child.get('pid')} {child.get('name', '')}, state {child.get('state', '')}"
              for child in stack.get("children", [])]
    return [line[:MAX_LINE] for line in lines]


def awaited_words(thread):
    """Of a barrier of JAX's coordination service, or a key of a store."""
    is_barrier = any("WaitAtBarrier" in frame.get("function", "") for frame in thread.get("frames", []))
    return "waits at the barrier {}" if is_barrier else "waits for the key {}"


def thread_lines(thread):
    words = [f"thread {thread.get('tid')} {thread.get('name', '')}, state {thread.get('state', '')}"]
    for name, text in (("wait_channel", "in the kernel: {}"), ("python_lock", "{} Python's lock"),
                       ("awaited_key", awaited_words(thread)), ("note", "{}")):
        if thread.get(name):
            words.append(text.format(thread[name]))
    return [", ".join(words), *(f"  {frame_words(frame)}" for frame in thread.get("frames", []))]


def frame_words(frame):
    place = f"{frame['file']}:{frame.get('line', 0)}" if frame.get("file") else frame.get("module", "")
    name = frame.get("function") or frame.get("address", "")
    return f"{name} ({place}){', Python' if frame.get('python') else ''}" if place else name
