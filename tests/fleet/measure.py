#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints what a daemon costs with fleets of several sizes, and with many jobs.

    tests/fleet/measure.py [BUILD_DIR] [--hosts=1024,4096,12500,jobs] [--seconds=90] [--jobs=0]
                           [--calls-per-second=20]

The machine runs the fleet as well: "load cores" is what that takes.
"""
import argparse
import pathlib
import tempfile

from fleet_case import Case, run_case, table

RANKS_PER_HOST = 8
HOSTS_A_JOB = 128
HANG_AFTER = 10
HOSTS_A_SECOND = 800  # that connect for the first time


def fleet_of(hosts, seconds, jobs, calls_per_second):
    jobs = jobs or max(1, hosts // HOSTS_A_JOB)
    start_within = max(1, hosts / HOSTS_A_SECOND)
    hang_at = seconds - HANG_AFTER - 10
    return Case(f"{hosts} hosts", seconds, jobs=jobs,
                ranks=hosts // jobs * RANKS_PER_HOST, start_within=start_within,
                hang_after=HANG_AFTER,
                flags=(f"--hang-at={hang_at}", f"--calls-per-second={calls_per_second}"),
                steady=(start_within + 10, hang_at))


def many_jobs(seconds):
    hang_at = seconds - HANG_AFTER - 10
    return Case("1,000 jobs", seconds, jobs=1000, ranks=64, start_within=10, hang_after=HANG_AFTER,
                flags=(f"--hang-at={hang_at}", "--hang-jobs=20"), steady=(20, seconds))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build", nargs="?", default="build/release", type=pathlib.Path)
    parser.add_argument("--hosts", default="1024,4096,12500,jobs",
                        help="sizes; jobs: 1,000 jobs of 64 ranks, of which 20 hang")
    parser.add_argument("--seconds", type=float, default=90)
    parser.add_argument("--jobs", type=int, default=0, help="of a fleet; 0: one for 128 hosts")
    parser.add_argument("--calls-per-second", type=float, default=20, help="of a rank of a fleet")
    options = parser.parse_args()
    for size in options.hosts.split(","):
        case = (many_jobs(options.seconds) if size == "jobs"
                else fleet_of(int(size), options.seconds, options.jobs,
                              options.calls_per_second))
        with tempfile.TemporaryDirectory() as folder:
            try:
                outcome = run_case(case, options.build, folder)
            except RuntimeError as error:
                print(error, flush=True)
                continue
        print(table([outcome]), flush=True)
        print(f"  {outcome.load}\n  false incidents: {outcome.false_incidents()}", flush=True)


main()
