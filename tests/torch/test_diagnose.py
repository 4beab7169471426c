# SPDX-License-Identifier: Apache-2.0
"""The hangs of real PyTorch on gloo, started without Rollcall's library, under `rollcall diagnose`.

    tests/run torch tests/torch/test_diagnose.py

The last lines say how often the culprits are right, and how often at least one of them. Two calls that differ are often
no more than two lines to a look from outside.
"""

import sys
import time

import pytest
from diagnosed_job import CANNOT_TELL, HANG, look_until_it_hangs, record_culprits, running
from gloo_cases import CASES
from hang_cases import BUILD, HERE
from program_runs import PYTHON_PATH

LAUNCH = HERE.parent / "standstill" / "launch.py"
STARTS, LONGEST = 8, 120  # seconds
FIRST = ("calls.skips_a_sum", "calls.misses_a_barrier")  # the gate runs these


def command(case, work):
    script = [sys.executable, str(case.file), case.program.split(".")[1], "--work", str(work)]
    return [sys.executable, str(LAUNCH), "-n", str(case.ranks), "--", *script]


@pytest.mark.parametrize("case", [pytest.param(case, id=case.program,
                                               marks=[] if case.program in FIRST else [pytest.mark.long])
                                  for case in CASES])
def test_the_culprits(case, tmp_path, record_property):
    (tmp_path / "work").mkdir()
    env = {"PYTHONPATH": PYTHON_PATH, "OMP_NUM_THREADS": "1", **case.env}
    with running(command(case, tmp_path / "work"), tmp_path, env) as job:
        time.sleep(STARTS)
        look = look_until_it_hangs(BUILD / "bin" / "rollcall", job, LONGEST)
    whole, said = record_culprits(record_property, case.program, look, case.culprits,
                                  names_all=len(case.culprits) == case.ranks)
    assert look.exit_code in (0, 2, 3) and look.seconds < 60, said
    if look.verdict:
        assert look.verdict["certainty"] != "certain", said
    if case.program in FIRST:
        hangs = bool(look.verdict) and look.verdict["certainty"] != "possible"
        assert look.exit_code == (HANG if hangs else CANNOT_TELL) and whole, said
