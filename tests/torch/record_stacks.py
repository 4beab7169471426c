#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the stacks of framework programs for tests/unit/daemon/report/framework_advice_test.cc.

    record_stacks.py FOLDER OUT      FOLDER: of the runs of test_frameworks.py (pytest's --basetemp)

OUT gets a file PROGRAM.json for each: the verdict, the stack of the first culprit and that of a rank
that waits, without what the advice does not depend on.
"""

import json
import pathlib
import re
import sys

LONGEST_NAME = 90
# Between the functions that have a meaning.
DISPATCH = ("pybind11", "c10::", "at::", "torch::detail", "torch::jit", "torch::impl", "std::_",
            "torch::handle", "torch::autograd::VariableType", "rollcall::sim")


def trimmed_frame(frame):
    file = re.sub(r"^.*/(site-packages|python3\.\d+)/", r"/usr/lib/python3/site-packages/",
                  frame["file"])
    file = re.sub(r"^.*/frameworks/", "/home/user/job/", file)
    kept = {"function": frame["function"][:LONGEST_NAME]}
    if frame["python"]:
        kept.update(file=file, line=frame["line"], python=True)
        if file.startswith("/home/user/job/"):
            kept.update(has_source=frame["has_source"], blocks=[
                {name: value for name, value in block.items() if value} for block in frame["blocks"]])
    else:
        kept.update(module="/usr/lib/" + pathlib.Path(frame["module"]).name,
                    interpreter=frame["interpreter"])
    return {name: value for name, value in kept.items() if value}


def trimmed_frames(frames):
    """From the innermost frame to the program's main function, without the interpreter's between."""
    kept, seen_python = [], False
    for frame in frames:
        seen_python = seen_python or frame["python"]
        if frame["function"] == "main" and frame["file"].endswith("/common.py"):
            break
        name = frame["function"]
        if name and not name.startswith(DISPATCH) and not (seen_python and frame["interpreter"]):
            kept.append(trimmed_frame(frame))
    return kept


def trimmed_stack(incident, rank):
    for stack in incident["stacks"]:
        for thread in stack["threads"]:
            if stack["rank"] == rank and thread["tid"] == stack["pid"]:
                return {"rank": rank, "pid": 1, "threads": [{
                    "tid": 1, "state": thread["state"], "wait_channel": thread["wait_channel"],
                    "frames": trimmed_frames(thread["frames"])}]}
    return {"rank": rank}


def trimmed_call(call):
    return {name: call[name] for name in ("position", "operation", "count", "dtype", "root")
            if name in call}


def trimmed(incident):
    verdict = incident["verdicts"][0]
    culprit = verdict["culprits"][0]
    kept = {
        "cause": verdict["cause"], "divergence": verdict["divergence"],
        "mismatched_fields": verdict["mismatched_fields"],
        "waiting_ranks": verdict["waiting_ranks"],
        "communicator": {"size": verdict["communicator"]["size"]},
        "call": trimmed_call(verdict.get("call", {})),
        "culprits": [{"rank": each["rank"], "call": trimmed_call(each.get("call", {}))}
                     for each in verdict["culprits"]]}
    culprits = trimmed_stack(incident, culprit["rank"])
    waiting = [trimmed_stack(incident, rank) for rank in verdict["waiting_ranks"]]
    stacks = [culprits, *[stack for stack in waiting if "threads" in stack][:1]]
    return {"verdicts": [kept], "stacks": stacks}


def to_text(incident):
    """A line for each frame, so that differences can be read."""
    return json.dumps(incident).replace('{"function"', '\n{"function"') + "\n"


def main(folder, out):
    out = pathlib.Path(out)
    out.mkdir(parents=True, exist_ok=True)
    for program in sorted(pathlib.Path(folder).rglob("program")):
        for file in program.parent.glob("reports/*/incident.json"):
            incident = json.loads(file.read_text())
            recorded = trimmed(incident)
            if "threads" in recorded["stacks"][0]:
                (out / f"{program.read_text()}.json").write_text(to_text(recorded))


if __name__ == "__main__":
    main(*sys.argv[1:])
