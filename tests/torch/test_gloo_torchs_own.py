# SPDX-License-Identifier: Apache-2.0
"""PyTorch's own tests of torch.distributed on gloo, with three ranks: with Rollcall each has the result that it has
without, and Rollcall says nothing of it."""

import os
import pathlib
import re
import subprocess
import sys
import xml.etree.ElementTree

import pytest
from hang_cases import BUILD

pytestmark = pytest.mark.long

TESTS = pathlib.Path(__file__).with_name("torchs_own.py")


def results(command, folder):
    """(the results by the names of the tests, what was said)"""
    folder.mkdir()
    env = {**os.environ, "BACKEND": "gloo", "WORLD_SIZE": "3", "TEMP_DIR": str(folder), "OMP_NUM_THREADS": "1"}
    report = folder / "results.xml"
    tests = [sys.executable, "-m", "pytest", str(TESTS), "-p", "no:xdist", f"--junitxml={report}"]
    run = subprocess.run([*command, *tests], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=900,
                         env=env, cwd=folder)
    found = {}
    for case in xml.etree.ElementTree.parse(report).getroot().iter("testcase"):
        found[case.get("name")] = next((child.tag for child in case), "passed")
    return found, re.findall(r"rollcall: .*", run.stdout + run.stderr)


@pytest.mark.timeout(1800)
def test_each_has_the_result_that_it_has_without_rollcall(tmp_path):
    plain, _ = results([], tmp_path / "plain")
    rollcall = [str(BUILD / "bin" / "rollcall"), "run", "--hang-after=60s", f"--report-dir={tmp_path / 'reports'}",
                "--"]
    watched, said = results(rollcall, tmp_path / "watched")
    assert list(plain.values()).count("passed") > 50
    assert watched == plain
    assert said == []
