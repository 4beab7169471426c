# SPDX-License-Identifier: Apache-2.0
"""Runs torch's own tests with Rollcall and without, and compares."""

import os
import re
import subprocess
import sys
import xml.etree.ElementTree

from hang_cases import BUILD


def results(command, tests, folder, env):
    """(the results by the names of the tests, what Rollcall said). tests: arguments of pytest."""
    folder.mkdir()
    report = folder / "results.xml"
    pytest = [sys.executable, "-m", "pytest", "-p", "no:xdist", f"--junitxml={report}", *tests]
    run = subprocess.run([*command, *pytest], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=900,
                         env={**os.environ, "TEMP_DIR": str(folder), "OMP_NUM_THREADS": "1", **env}, cwd=folder)
    found = {}
    for case in xml.etree.ElementTree.parse(report).getroot().iter("testcase"):
        name = f"{case.get('classname').split('.')[-1]}.{case.get('name')}"
        found[name] = next((child.tag for child in case), "passed")
    return found, re.findall(r"rollcall: .*", run.stdout + run.stderr)


def check_results(tests, tmp_path, least_passed, **env):
    plain, _ = results([], tests, tmp_path / "plain", env)
    rollcall = [str(BUILD / "bin" / "rollcall"), "run", "--hang-after=60s", f"--report-dir={tmp_path / 'reports'}",
                "--"]
    watched, said = results(rollcall, tests, tmp_path / "watched", env)
    assert list(plain.values()).count("passed") > least_passed
    assert watched == plain
    # To Rollcall all tests are one job, which starts again and again.
    assert [line for line in said if "dropped attempts" not in line] == []
