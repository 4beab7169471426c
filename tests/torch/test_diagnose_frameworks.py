# SPDX-License-Identifier: Apache-2.0
"""The hangs of programs of many frameworks, started without Rollcall's library, under `rollcall diagnose`.

    tests/run frameworks tests/torch/test_diagnose_frameworks.py

The last lines say how often the culprits are right, and how often at least one of them. A job that its own framework
ends leaves nothing to look at: the table leaves it out.
"""

import sys
import time

import pytest
from diagnosed_job import HANG, look_until_it_hangs, record_culprits, running
from framework_cases import CASES, FOLDER, lacks_packages, starts_its_ranks
from hang_cases import BUILD, HERE
from program_runs import PYTHON, PYTHON_PATH, file_of

pytestmark = pytest.mark.long

LAUNCH = HERE.parent / "standstill" / "launch.py"
STARTS, LONGEST = 12, 60  # seconds: four processes import a framework


def command(case, work, fixed=False):
    script = [str(PYTHON if PYTHON.exists() else sys.executable), str(file_of(FOLDER, case.program)),
              case.program.split(".")[1], "--work", str(work), *(["--fixed"] if fixed else [])]
    if starts_its_ranks(case.program):
        return [*script, "--ranks", str(case.ranks)]
    return [sys.executable, str(LAUNCH), "-n", str(case.ranks), "--", *script]


def start(case, folder, fixed=False):
    (folder / "work").mkdir()
    if lacks_packages(case.program):
        pytest.skip("no frameworks; to have them:  deploy/setup_parts.sh frameworks")
    env = {"PYTHONPATH": PYTHON_PATH, "OMP_NUM_THREADS": "1", "PROGRAM_BACKEND": case.backend,
           "DS_ACCELERATOR": "cpu", "ACCELERATE_USE_CPU": "true"}
    return running(command(case, folder / "work", fixed), folder, env)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_culprits(case, tmp_path, record_property):
    with start(case, tmp_path) as job:
        time.sleep(STARTS)
        look = look_until_it_hangs(BUILD / "bin" / "rollcall", job, LONGEST)
        has_ended = job.poll() is not None
    assert look.exit_code in (0, 2, 3) and look.seconds < 60, look.reasons
    if has_ended:
        pytest.skip("the job has ended by itself")
    _, said = record_culprits(record_property, case.name, look, case.culprits)
    if look.verdict:
        assert look.verdict["certainty"] != "certain", said


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_nothing_is_said_without_the_mistake(case, tmp_path):
    with start(case, tmp_path, fixed=True) as job:
        time.sleep(STARTS)
        look = look_until_it_hangs(BUILD / "bin" / "rollcall", job, 0)
    assert look.exit_code != HANG, look.verdict["summary"]
