#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How long Rollcall takes, at 4 and at 32 ranks:

  contradiction   from the last rank's entry into the mismatched call to the
                  confirmed incident, and to the report on disk
  wait            from the end of --hang-after to the report on disk

    tests/bench/detection_latency.py BUILD_DIR [ROUNDS]

The victims print the time (Unix seconds) at which they enter the call that
never ends. Printed are the median and the worst of the rounds.
"""
import datetime
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

HANG_AFTER = 3.0


def run(build, victim, ranks, hang_after):
    reports = pathlib.Path(tempfile.mkdtemp()) / "reports"
    job = subprocess.Popen(
        [build / "bin/rollcall", "run", "--sim", f"--hang-after={hang_after}s", "--on-hang=abort",
         f"--report-dir={reports}", "--", build / "tests/ranks", "-n", str(ranks), "--keep-going",
         "--", build / "tests" / victim],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        env={**os.environ, "PRINT_TIMES": "1"})
    on_disk = None
    while on_disk is None and job.poll() is None:
        if reports.exists() and any(not p.name.startswith(".") for p in reports.iterdir()):
            on_disk = time.time()
        time.sleep(0.005)
    out, _ = job.communicate(timeout=60)
    entered = [float(line.split()[1]) for line in out.splitlines() if line.startswith("entered ")]
    folder = next(p for p in reports.iterdir() if not p.name.startswith("."))
    incident = json.loads((folder / "incident.json").read_text())
    shutil.rmtree(reports.parent)
    confirmed = datetime.datetime.fromisoformat(incident["confirmed_at"].replace("Z", "+00:00"))
    return entered, confirmed.timestamp(), on_disk


def show(name, values):
    print(f"{name:58s} median {statistics.median(values):6.2f} s   worst {max(values):6.2f} s")


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 5
    for ranks in (4, 32):
        confirmed, disk = [], []
        for _ in range(rounds):
            entered, at, on_disk = run(build, "one_rank_broadcasts", ranks, 600)
            confirmed.append(at - max(entered))
            disk.append(on_disk - max(entered))
        show(f"{ranks} ranks: contradiction to confirmed incident", confirmed)
        show(f"{ranks} ranks: contradiction to report on disk", disk)
        disk = []
        for _ in range(rounds):
            entered, _, on_disk = run(build, "one_rank_stops_calling", ranks, HANG_AFTER)
            disk.append(on_disk - min(entered) - HANG_AFTER)
        show(f"{ranks} ranks: --hang-after to report on disk", disk)


if __name__ == "__main__":
    main()
