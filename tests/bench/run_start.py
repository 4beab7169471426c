#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `rollcall run` adds to the start and the end of a job: with its embedded daemon and page, and
without the page.

    tests/bench/run_start.py [BUILD_DIR] [STARTS]      build/release and 100

Runs /bin/true alone and under `rollcall run` in turn. Prints the medians in milliseconds, the CPU time
of all processes, and the largest memory.
"""
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time


def measure(command):
    """(milliseconds, milliseconds of CPU, MiB at most) of the command and its children."""
    begun = time.perf_counter()
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    took = time.perf_counter() - begun
    if status != 0:
        raise SystemExit(f"{command} failed")
    return 1000 * took, 1000 * (usage.ru_utime + usage.ru_stime), usage.ru_maxrss / 1024


def main():
    build = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "build/release")
    starts = int(sys.argv[2]) if len(sys.argv) > 2 else 100
    rollcall = (build / "bin" / "rollcall").resolve(strict=True)
    with tempfile.TemporaryDirectory() as folder:
        run = [rollcall, "run", f"--report-dir={folder}/reports"]
        ways = {"alone": ["/bin/true"], "rollcall run": [*run, "--", "/bin/true"],
                "rollcall run, no page": [*run, "--http=none", "--", "/bin/true"]}
        figures = {way: [] for way in ways}
        for _ in range(starts):
            for way, command in ways.items():
                figures[way].append(measure(command))
    print(f"{'':24s} {'ms':>8s} {'CPU ms':>8s} {'MiB':>8s}   medians of {starts}")
    for way, all_starts in figures.items():
        print(f"{way:24s} " + " ".join(f"{statistics.median(c):8.1f}" for c in zip(*all_starts)))


main()
