# SPDX-License-Identifier: Apache-2.0
"""Checks a trace against the trace event format and docs/trace_format.md, strictly.

The importer of Perfetto itself (trace_processor) comes only as a program from a place that tests do
not ask, so this file holds what the format's description demands.
"""
import collections
import datetime
import numbers

METADATA = {"process_name": ("name", str), "process_labels": ("labels", str),
            "process_sort_index": ("sort_index", int), "thread_name": ("name", str),
            "thread_sort_index": ("sort_index", int)}
PHASES = {"M", "X", "B", "i"}
CALL_ARGS = {"communicator", "communicator_id", "communicator_size", "position", "dtype", "count",
             "entered_at", "state"}


def number(value):
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def check_event(event):
    assert event["ph"] in PHASES, event
    assert isinstance(event["name"], str) and event["name"], event
    assert number(event["ts"]) and event["ts"] >= 0, event
    assert isinstance(event["pid"], int) and isinstance(event["tid"], int), event
    if event["ph"] == "M":
        key, kind = METADATA[event["name"]]
        assert list(event["args"]) == [key] and isinstance(event["args"][key], kind), event
        return
    assert event["cat"] == "rollcall", event
    assert ("dur" in event) == (event["ph"] == "X"), event
    assert event.get("dur", 0) >= 0, event
    assert event.get("s") == {"i": event.get("s")}.get(event["ph"]), event
    if event["ph"] == "i":
        assert event["s"] in ("t", "p", "g"), event


def check_lane(events):
    """One call after the other: nothing overlaps, and only the last call may be open."""
    calls = [event for event in events if event["ph"] in "XB"]
    calls.sort(key=lambda event: event["ts"])
    for event, following in zip(calls, calls[1:]):
        assert event["ph"] == "X", (event, following)
        assert event["ts"] + event["dur"] <= following["ts"] + 1e-3, (event, following)
    marks = [event for event in events if event["ph"] == "i"]
    open_calls = [event for event in calls if event["ph"] == "B"]
    assert len(marks) == len(open_calls), (marks, open_calls)
    for begin, mark in zip(open_calls, marks):
        assert mark["ts"] >= begin["ts"] and mark["name"].startswith(begin["name"]), mark
    for event in calls:
        assert event["args"].keys() >= CALL_ARGS, event
        assert event["args"]["state"] in ("returned", "waits", "has not returned"), event


def check(trace):
    """Returns {rank: its calls, in order}."""
    assert trace.keys() == {"displayTimeUnit", "baseTimeNanoseconds", "otherData", "traceEvents"}
    assert trace["displayTimeUnit"] == "ms"
    assert trace["otherData"]["format"] == "rollcall-trace-1"
    base = datetime.datetime.fromisoformat(trace["otherData"]["ts_begins_at"].replace("Z", "+00:00"))
    assert base.timestamp() * 1e9 == trace["baseTimeNanoseconds"]
    lanes, names = collections.defaultdict(list), set()
    for event in trace["traceEvents"]:
        check_event(event)
        if event["ph"] != "M":
            lanes[event["pid"], event["tid"]].append(event)
        elif event["name"] == "process_name":
            names.add(event["pid"])
        elif event["name"] == "thread_name":
            names.add((event["pid"], event["tid"]))
    calls = collections.defaultdict(list)
    for (pid, tid), events in lanes.items():
        assert pid in names and (pid, tid) in names, f"{pid}/{tid} has no name"
        if events[0].get("s") == "g":  # the life of the incident
            continue
        check_lane(events)
        calls[pid] += [event for event in events if event["ph"] in "XB"]
    for events in calls.values():
        events.sort(key=lambda event: event["ts"])
    assert sum(map(len, calls.values())) == trace["otherData"]["calls"]
    return dict(calls)
