#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counts false alarms: runs a healthy 8-rank job with many kinds of calls N times under
Rollcall with a short --hang-after, and counts what should never be.

    tests/bench/healthy_runs.py BUILD_DIR [N]
"""
import pathlib
import subprocess
import sys
import tempfile
import time


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    runs = int(sys.argv[2]) if len(sys.argv) > 2 else 1000
    failed = alarms = words = 0
    begun = time.monotonic()
    with tempfile.TemporaryDirectory() as scratch:
        reports = pathlib.Path(scratch) / "reports"
        for _ in range(runs):
            result = subprocess.run(
                [build / "bin/rollcall", "run", "--sim", "--hang-after=5s",
                 f"--report-dir={reports}", "--", build / "tests/ranks", "-n", "8", "--",
                 build / "tests/healthy_mix"], capture_output=True, text=True)
            failed += result.returncode != 0
            words += result.stderr != ""
        alarms = len(list(reports.iterdir())) if reports.exists() else 0
    print(f"{runs} runs of 8 ranks in {time.monotonic() - begun:.0f} s: {failed} exit codes other "
          f"than 0, {alarms} incidents, {words} with a word on stderr")
    sys.exit(failed + alarms + words > 0)


if __name__ == "__main__":
    main()
