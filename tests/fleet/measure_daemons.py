#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints what one, two and three daemons on one PostgreSQL cost under the same load.

    tests/fleet/measure_daemons.py [BUILD_DIR] [--daemons=1,2,3] [--jobs=100] [--ranks=100]
                                   [--seconds=85] [--start-within=5]

The machine runs the load and PostgreSQL as well. Some jobs hang: each must have one incident. At the end one
of several daemons is killed, and the others take its jobs.
"""
import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import urllib.request

HERE = pathlib.Path(__file__).parent
sys.path[:0] = [str(HERE.parent / folder) for folder in ("e2e", "support")]
HANG_AFTER = 10
HANG_JOBS = 10
TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


def cpu_seconds(process):
    """Of the process and of those that it has waited for, or that live under it."""
    tree = [process.pid]
    for pid in tree:
        for children in pathlib.Path(f"/proc/{pid}").glob("task/*/children"):
            tree += [int(child) for child in children.read_text().split()]
    spent = 0
    for pid in tree:
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        spent += sum(int(field) for field in fields[11:15])
    return spent / TICKS_PER_SECOND


def rss_mib(process):
    status = pathlib.Path(f"/proc/{process.pid}/statm").read_text().split()
    return int(status[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def measure(options, count, folder):
    os.environ["ROLLCALL_BUILD"] = str(options.build.resolve())
    from postgres_server import PostgresServer
    from processes import Service
    server = PostgresServer()
    daemons = []
    try:
        for number in range(1, count + 1):
            daemon = Service([options.build / "bin" / "rollcalld", "--listen=127.0.0.1:0", "--http=127.0.0.1:0",
                              f"--hang-after={HANG_AFTER}s", f"--report-dir={folder}/{number}",
                              f"--store={server.url}", f"--daemon-name=daemon-{number}"], env=server.environment)
            said = daemon.read_until(r"agents on (127\.0\.0\.1:\d+), pages on (http://127\.0\.0\.1:\d+)/")
            daemon.address, daemon.page = said.groups()
            daemons.append(daemon)
        return load(options, server, daemons)
    finally:
        for daemon in daemons:
            daemon.kill()
        server.end()


def metric(daemon, name):
    with urllib.request.urlopen(f"{daemon.page}/metrics", timeout=120) as answer:
        return int(re.search(rf"^{re.escape(name)} (\d+)", answer.read().decode(), re.M)[1])


def jobs_of(daemon):
    """That the daemon owns, by itself."""
    return metric(daemon, 'rollcall_fleet_jobs{state="owned"}')


def watch_writes(daemons, until):
    """Of each daemon the most that waited for the database at the looks, and its last sum."""
    most, last = [0] * len(daemons), 0
    while time.monotonic() < until:
        waits = [metric(daemon, "rollcall_history_spooled") for daemon in daemons]
        most, last = [max(pair) for pair in zip(most, waits)], sum(waits)
        time.sleep(1)
    return most, last


def kill_one(daemons):
    """Seconds until the others have all jobs, and know what was known of them."""
    jobs = sum(jobs_of(daemon) for daemon in daemons)
    daemons[0].process.kill()
    began = time.monotonic()
    while sum(jobs_of(daemon) for daemon in daemons[1:]) < jobs:
        if time.monotonic() - began > 60:
            return float("inf")
        time.sleep(0.1)
    return time.monotonic() - began


def load(options, server, daemons):
    hang_at = options.seconds - HANG_AFTER - 30
    running = subprocess.Popen(
        [options.build / "tests" / "fleet_load", "--daemon=" + ",".join(d.address for d in daemons),
         f"--jobs={options.jobs}", f"--ranks={options.ranks}", f"--seconds={options.seconds}",
         f"--threads={max(2, os.cpu_count() // 2)}",
         f"--start-within={options.start_within}", f"--hang-at={hang_at}", f"--hang-jobs={HANG_JOBS}"],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    settled = options.start_within + 15
    most_waited, _ = watch_writes(daemons, time.monotonic() + settled)
    began, spent = time.monotonic(), [cpu_seconds(p) for p in (*[d.process for d in daemons], server.process)]
    _, still_waits = watch_writes(daemons, began + hang_at - settled - 2)
    lasted = time.monotonic() - began
    cores = [(cpu_seconds(p) - before) / lasted
             for p, before in zip((*[d.process for d in daemons], server.process), spent)]
    owned = dict(server.sql("SELECT daemon, count(*) FROM rollcall.owners GROUP BY daemon"))
    time.sleep(HANG_AFTER + 8)
    resident = " ".join(f"{rss_mib(d.process):.0f}" for d in daemons)
    taken_after = kill_one(daemons) if len(daemons) > 1 else None
    said = json.loads(running.communicate(timeout=options.seconds)[0])
    rows = server.sql("SELECT job, confirmed_ns FROM (SELECT job, opened_ns AS confirmed_ns FROM "
                      "rollcall.incidents WHERE confirmed <> 0) AS confirmed")
    hung = {hang["job"] for hang in said["hangs"]}
    return {"daemons": len(daemons), "hosts": said["hosts"], "ranks": options.jobs * options.ranks,
            "daemon cores": " ".join(f"{c:.2f}" for c in cores[:-1]), "PostgreSQL cores": f"{cores[-1]:.2f}",
            "RSS MiB": resident,
            "most that waited for PostgreSQL": " ".join(map(str, most_waited)),
            "that waited before the hangs": still_waits,
            "jobs of each": " ".join(owned.get(f"daemon-{i + 1}", "0") for i in range(len(daemons))),
            "jobs of the killed one elsewhere after": f"{taken_after:.1f} s" if taken_after else "-",
            "load cores": f"{said['cpu_seconds'] / options.seconds:.2f}",
            "hung": len(hung), "their incidents": len([r for r in rows if r[0] in hung]),
            "false incidents": len([r for r in rows if r[0] not in hung]),
            "streams closed": said["streams_closed_by_daemon"], "moved": said["streams_cut"],
            "machine load": f"{os.getloadavg()[0]:.1f}"}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build", nargs="?", default="build/release", type=pathlib.Path)
    parser.add_argument("--daemons", default="1,2,3")
    parser.add_argument("--jobs", type=int, default=100)
    parser.add_argument("--ranks", type=int, default=100, help="of each job")
    parser.add_argument("--seconds", type=float, default=85, help="at least 60 more than --start-within")
    parser.add_argument("--start-within", type=float, default=5, help="seconds until all hosts report")
    options = parser.parse_args()
    for count in options.daemons.split(","):
        with tempfile.TemporaryDirectory() as folder:
            for name, value in measure(options, int(count), folder).items():
                print(f"{name:>39}  {value}")
        print(flush=True)


main()
