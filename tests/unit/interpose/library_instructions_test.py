# SPDX-License-Identifier: Apache-2.0
"""Checks the number of instructions of a recorded call, so that no change raises it by accident.

Times differ from run to run; what callgrind counts does not. Each bar is what was counted when it
was last set (g++ 12, x86-64), and a twentieth for other compilers.
"""
import os
import platform
import re
import shutil
import subprocess

import pytest

LIBRARY = os.environ["ROLLCALL_LIBRARY"]
STUBS = os.environ["ROLLCALL_STUB_DIR"]
CALLS = 2000
# Steps before, a step that makes so many calls, steps behind it; and what each adds.
BARS = {
    "one call": ([], "many={}", [], 185),
    "a call in a group": (["group_start"], "many={}", ["group_end"], 256),
}


def own_cost(profile):
    """Instructions within the library itself, of a file that callgrind wrote."""
    cost, ours, inclusive, names = 0, False, False, {}
    for line in profile.read_text().splitlines():
        found = re.match(r"(c?)ob=(\(\d+\))(?: (.*))?$", line)
        if found:
            of_callee, number, name = found.groups()
            names.setdefault(number, name)  # told once
            if not of_callee:
                ours = names[number].endswith("librollcall.so")
        elif line.startswith("calls="):
            inclusive = True  # the next line tells what the callee took
        elif re.match(r"[+*\d-]", line):
            cost += 0 if inclusive or not ours else int(line.split()[1])
            inclusive = False
    return cost


def instructions(steps, tmp_path):
    segments = tmp_path / "segments"
    segments.mkdir(mode=0o700, exist_ok=True)
    profile = tmp_path / "callgrind.out"
    subprocess.run(
        ["valgrind", "--tool=callgrind", f"--callgrind-out-file={profile}",
         os.environ["LIBRARY_STEPS"], "id", "init=2,0", *steps],
        check=True, capture_output=True, timeout=120,
        env={"PATH": os.environ["PATH"], "LD_LIBRARY_PATH": STUBS, "ROLLCALL_MARKERS": "0",
             "ROLLCALL_DIR": str(segments), "LD_PRELOAD": LIBRARY})
    return own_cost(profile)


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the bars are those of x86-64")
@pytest.mark.skipif(shutil.which("valgrind") is None, reason="valgrind is not installed")
@pytest.mark.parametrize("what", BARS)
def test_a_call_takes_no_more_instructions_than_before(what, tmp_path):
    before, step, behind, bar = BARS[what]

    def of(calls):
        return instructions([*before, step.format(calls), *behind], tmp_path)

    taken = (of(2 * CALLS) - of(CALLS)) / CALLS
    print(f"{what}: {taken:.1f} instructions")
    assert taken <= bar * 1.05
    assert taken > bar * 0.8, "it has become shorter: set the bar anew"
