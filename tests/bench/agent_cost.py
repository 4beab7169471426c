#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What rollcall-agent costs a host: its CPU, its start, its memory.

    tests/bench/agent_cost.py [BUILD_DIR] [--seconds=20] [--starts=10] [--ranks=8]
                              [--calls-per-second=2000] [--watch-rounds=5]

Runs a real daemon, and ranks on the simulated NCCL that make that many calls a second. Starts the
agent several times and measures the time from exec until the daemon shows the job, which it does
when it has applied the agent's first tick. Then measures the last agent for `--seconds`. Prints
each figure beside its target. Then measures agent and daemon with the watch on jobs that stand
still, and without it, by turns. Other work on the machine makes the figures worse.
"""
import argparse
import contextlib
import http.client
import itertools
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "fleet"))
from fleet_case import Daemon

JOB = "agent-cost"
TARGET_CPU_PERCENT, TARGET_START_MS, TARGET_MEMORY_MIB = 0.5, 50, 40
SETTLE_SECONDS = 3


def cpu_seconds(pid):
    """All threads of the process, to the nanosecond: the kernel's clock of its CPU time."""
    return time.clock_gettime(~pid << 3 | 2)


def memory_mib(pid, what):
    rollup = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text()
    return int(re.search(rf"^{what}:\s+(\d+)", rollup, re.MULTILINE).group(1)) / 1024


def start_job(build, folder, ranks, calls_per_second, running):
    # Where the library creates them by default: a read of another file system costs more.
    segments = running.enter_context(tempfile.TemporaryDirectory(dir="/dev/shm"))
    job = subprocess.Popen(
        [build / "tests" / "ranks", "-n", str(ranks), "--", build / "bench" / "paced_rank",
         str(calls_per_second)],
        stdout=(folder / "calls").open("w"),
        env={**os.environ, "LD_PRELOAD": str(build / "lib" / "librollcall.so"),
             "LD_LIBRARY_PATH": str(build / "sim"), "ROLLCALL_DIR": str(segments),
             "ROLLCALL_JOB": JOB})
    running.callback(stop, job)
    until = time.monotonic() + 30
    while not (folder / "calls").stat().st_size:
        if job.poll() is not None or time.monotonic() > until:
            raise SystemExit("the job did not start")
        time.sleep(0.1)
    return segments


def call_rate(folder, since, until):
    """Calls a second of each rank between two times, as rank 0 printed them."""
    lines = [line.split() for line in (folder / "calls").read_text().splitlines()]
    times = [(float(at), int(calls)) for at, calls in lines if since <= float(at) <= until]
    return (times[-1][1] - times[0][1]) / (times[-1][0] - times[0][0])


def start_agent(build, daemon, segments, log):
    return subprocess.Popen(
        [build / "bin" / "rollcall-agent", f"--daemon={daemon.listen}", f"--dir={segments}",
         "--scope=directory"], stderr=log)


def await_job(page):
    until = time.monotonic() + 30
    connection = http.client.HTTPConnection(page)
    for poll in itertools.count():
        if time.monotonic() > until:
            raise SystemExit("the daemon has not received a tick")
        # The daemon keeps an answer for viewers that ask the same; another limit is another answer.
        connection.request("GET", f"/api/v1/jobs?limit={1 + poll % 1000}")
        if any(job["name"] == JOB for job in json.load(connection.getresponse())["jobs"]):
            return
        time.sleep(0.001)


def stop(process):
    process.terminate()
    process.wait()


def measure_start(build, folder, segments, running, flags=(), hang_after=60):
    """With a new daemon. Returns the daemon, the agent and the milliseconds."""
    folder.mkdir()
    daemon = Daemon(build, folder, hang_after, flags)
    running.callback(daemon.end)
    with (folder / "agent.log").open("w") as log:
        begun = time.monotonic()
        agent = start_agent(build, daemon, segments, log)
    running.callback(stop, agent)
    await_job(daemon.page)
    return daemon, agent, (time.monotonic() - begun) * 1000


def measure_steady(agent, folder, seconds):
    """Returns the CPU of the agent in percent of a core, and the calls a second of a rank."""
    time.sleep(SETTLE_SECONDS)
    begun, spent = time.monotonic(), cpu_seconds(agent.pid)
    time.sleep(seconds)
    ended = time.monotonic()
    percent = 100 * (cpu_seconds(agent.pid) - spent) / (ended - begun)
    return percent, call_rate(folder, begun, ended)


def measure_watch(build, folder, segments, options):
    """The CPU in percent of a core, {watch: {program: [of each round]}}."""
    spent = {watch: {"agent": [], "daemon": []} for watch in ("all", "calls")}
    for i, watch in itertools.product(range(options.watch_rounds), spent):
        with contextlib.ExitStack() as running:
            # The watch begins to look after --hang-after: it has reason to from the first second on.
            daemon, agent, _ = measure_start(build, folder / f"{watch}-{i}", segments, running,
                                             [f"--watch={watch}"], hang_after=1)
            time.sleep(SETTLE_SECONDS)
            pids = {"agent": agent.pid, "daemon": daemon.process.pid}
            begun, before = time.monotonic(), {name: cpu_seconds(pid) for name, pid in pids.items()}
            time.sleep(options.seconds)
            passed = time.monotonic() - begun
            for name, pid in pids.items():
                spent[watch][name].append(100 * (cpu_seconds(pid) - before[name]) / passed)
    return spent


def show_watch(spent):
    for name in ("agent", "daemon"):
        on, off = (spent[watch][name] for watch in ("all", "calls"))
        show(f"CPU of the {name}, watch on : off",
             f"{statistics.median(on):.2f} % : {statistics.median(off):.2f} %",
             f"within {max(off) - min(off):.2f} %, the noise of {len(off)} rounds without it")


def show(what, figure, target):
    print(f"{what:42s} {figure:32s} target {target}", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build", nargs="?", default="build/release", type=pathlib.Path)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--starts", type=int, default=10)
    parser.add_argument("--ranks", type=int, default=8)
    parser.add_argument("--watch-rounds", type=int, default=5)
    parser.add_argument("--calls-per-second", type=int, default=2000, help="of each rank")
    options = parser.parse_args()
    build = options.build.resolve(strict=True)
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as job:
        folder = pathlib.Path(name)
        segments = start_job(build, folder, options.ranks, options.calls_per_second, job)
        starts = []
        for i in range(options.starts - 1):
            with contextlib.ExitStack() as running:
                starts.append(measure_start(build, folder / str(i), segments, running)[2])
        with contextlib.ExitStack() as running:
            _, agent, took = measure_start(build, folder / "last", segments, running)
            starts.append(took)
            percent, rate = measure_steady(agent, folder, options.seconds)
            rss, pss = memory_mib(agent.pid, "Rss"), memory_mib(agent.pid, "Pss")
        watch = measure_watch(build, folder, segments, options)
    print(f"{options.ranks} ranks, {rate:.0f} calls a second each; "
          f"load average {os.getloadavg()[0]:.1f}")
    show("CPU of the agent", f"{percent:.2f} % of a core", f"{TARGET_CPU_PERCENT} %")
    show("exec to the first tick in the daemon",
         f"median {statistics.median(starts):.0f} ms, best {min(starts):.0f} ms",
         f"{TARGET_START_MS} ms")
    show("memory of the agent", f"RSS {rss:.1f} MiB, PSS {pss:.1f} MiB",
         f"{TARGET_MEMORY_MIB} MiB")
    if options.watch_rounds > 0:
        show_watch(watch)


main()
