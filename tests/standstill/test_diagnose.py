# SPDX-License-Identifier: Apache-2.0
"""The programs of this folder, started without Rollcall's library, under `rollcall diagnose`.

    tests/run standstill tests/standstill/test_diagnose.py

The last lines say how often the culprits are right, and how often at least one of them. Nothing may be said of the
programs without their mistakes.
"""

import dataclasses
import os
import pathlib
import subprocess
import time

import pytest
from cases import CASES, LEFT_ALONE
from diagnosed_job import HANG, Look, look_until_it_hangs, record_culprits, running
from expected_verdict import CERTAINTIES

pytestmark = pytest.mark.long

ROLLCALL = pathlib.Path(os.environ["ROLLCALL_BUILD"]).resolve() / "bin" / "rollcall"
STARTS = 8  # seconds: PyTorch in three processes; looks are repeated for what takes longer
LONGEST = 45
ENV = {"RAY_AUTH_MODE": "disabled", "RAY_USAGE_STATS_ENABLED": "0"}


def start(row, folder, fixed=False):
    place = folder / "place"
    place.mkdir()
    if row.is_c:
        subprocess.run(row.compile_command(folder), check=True)
    return running(row.command(place, folder, fixed=fixed, seconds=2 * LONGEST), folder, ENV)


@pytest.mark.parametrize("row", CASES, ids=lambda row: row.program)
def test_the_culprits(row, tmp_path, record_property):
    with start(row, tmp_path) as job:
        time.sleep(STARTS)
        look = look_until_it_hangs(ROLLCALL, job, LONGEST if "" not in row.causes else 0)
    row.remove_ipc(tmp_path / "place")
    _, said = record_culprits(record_property, row.program, look, row.culprits)
    if look.verdict:
        assert CERTAINTIES.index(look.verdict["certainty"]) <= CERTAINTIES.index("likely")
    assert look.exit_code in (0, 2, 3) and look.seconds < 12, said


@pytest.mark.parametrize("program", ["jax_service.skips_a_gather", "jax_service.leaves_a_step_early"])
def test_finds_ranks_of_jax_that_no_variable_numbers(program, tmp_path):
    row = dataclasses.replace(next(row for row in CASES if row.program == program), launch=("--unnamed",))
    with start(row, tmp_path) as job:
        time.sleep(STARTS)
        look = look_until_it_hangs(ROLLCALL, job, LONGEST)
    seen = look.incidents[0]["look"]
    assert seen["ranks"] == row.ranks and len(look.incidents) == 1, look.text + look.errors
    assert any("no variable gives the ranks their numbers" in line for line in seen["unseen"]), seen
    if look.verdict:  # here ranks count in order of their processes
        assert len(look.culprits) == 1, look.verdict["summary"]


@pytest.mark.parametrize("row", CASES + LEFT_ALONE, ids=lambda row: row.program)
def test_nothing_is_said_without_the_mistake(row, tmp_path):
    with start(row, tmp_path, fixed=True) as job:
        time.sleep(STARTS)
        for _ in range(2):
            look = Look(ROLLCALL, job.pid)
            assert look.exit_code != HANG, look.verdict["summary"]
    row.remove_ipc(tmp_path / "place")
