# SPDX-License-Identifier: Apache-2.0
"""Programs on gloo that throw, fork and end in odd ways: the same exit code and output with Rollcall as without
it, and no incident."""

import os
import re
import subprocess
import sys

import pytest
from hang_cases import BUILD, HERE
from processes import free_port

FILE = HERE / "gloo" / "ends.py"
PROGRAMS = re.findall(r"^def (\w+)\(rank\)", FILE.read_text(), re.MULTILINE)
FAILING = ("raises_in_the_loop", "is_killed")  # Rollcall may say which rank was first

pytestmark = pytest.mark.long


def result(command, program):
    """The exit code, and the lines of both ranks without order. Warnings go to stderr."""
    job = [str(BUILD / "tests" / "ranks"), "-n", "2", "--keep-going", "--", sys.executable, str(FILE), program]
    environment = dict(os.environ, MASTER_ADDR="127.0.0.1", MASTER_PORT=str(free_port()), OMP_NUM_THREADS="1")
    run = subprocess.run([*command, *job], env=environment, capture_output=True, text=True, timeout=120)
    return run.returncode, sorted(run.stdout.splitlines()), run.stderr


@pytest.mark.parametrize("detail", ["", "DETAIL"])
@pytest.mark.parametrize("program", PROGRAMS)
def test_the_library_changes_nothing(program, detail, tmp_path, monkeypatch):
    if detail:
        monkeypatch.setenv("TORCH_DISTRIBUTED_DEBUG", detail)
    plain = result([], program)
    rollcall = [str(BUILD / "bin" / "rollcall"), "run", "--hang-after=20s", f"--report-dir={tmp_path}", "--"]
    watched = result(rollcall, program)
    assert watched[:2] == plain[:2], watched[2]
    assert program in FAILING or not list(tmp_path.glob("*/incident.json")), watched[2]
