# SPDX-License-Identifier: Apache-2.0
"""Processes that write anything into their own segments, while a real agent reads them and a daemon judges them."""
import os
import re
import subprocess
import time

import pytest
from conftest import BUILD, Service, ask, long, wait_for

HOSTILE = ["nice", "-n", "15", BUILD / "fuzz" / "hostile_segment"]
WRITERS = 2


def most_memory_mb(pid):
    with open(f"/proc/{pid}/status") as status:
        return int(re.search(r"VmHWM:\s+(\d+) kB", status.read())[1]) // 1024


def cpu_seconds(pid):
    with open(f"/proc/{pid}/stat") as stat:
        fields = stat.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def start_writers(segments, seed):
    writers = [subprocess.Popen([*HOSTILE, segments, str(seed + i)], stdout=subprocess.PIPE, text=True)
               for i in range(WRITERS)]
    for writer in writers:
        assert " writes " in writer.stdout.readline()
    return writers  # of jobs with the names that they write


def end_of(process):
    process.kill()
    process.wait()


@pytest.mark.parametrize("seed, seconds", [(1, 10), long(100, 60), long(200, 60), long(300, 60)])
def test_what_they_write_harms_neither_agent_nor_daemon_nor_the_verdict_on_another_job(start_daemon, tmp_path, seed,
                                                                                      seconds):
    daemon = start_daemon()
    segments = tmp_path / "segments"
    segments.mkdir(mode=0o700)
    agent = Service([BUILD / "bin" / "rollcall-agent", f"--daemon={daemon.address}", f"--dir={segments}",
                     "--scope=directory"])
    begun = time.monotonic()
    writers = start_writers(segments, seed)
    job = subprocess.Popen(
        [BUILD / "tests" / "ranks", "-n", "4", "--", BUILD / "tests" / "one_rank_stops_calling"],
        env={**os.environ, "LD_PRELOAD": str(BUILD / "lib" / "librollcall.so"),
             "LD_LIBRARY_PATH": str(BUILD / "sim"), "ROLLCALL_DIR": str(segments), "ROLLCALL_JOB": "a-job"})
    try:
        def of_the_job():
            return [ask(daemon, f"incident?id={i['id']}") for i in ask(daemon, "incidents")["incidents"]
                    if i["job"] == "a-job" and "confirmed_at" in i]

        wait_for(of_the_job)
        time.sleep(max(0, begun + seconds - time.monotonic()))
        jobs = {job["name"] for job in ask(daemon, "status")["jobs"]}
        assert len(jobs) > 1, "the agent has read what they write"
        assert [c["rank"] for i in of_the_job() for c in i["verdicts"][0]["culprits"]] == [3]
        assert all(writer.poll() is None for writer in writers)
        assert agent.process.poll() is None and daemon.process.poll() is None
        took = time.monotonic() - begun
        for program in (agent, daemon):
            cpu, most = cpu_seconds(program.process.pid), most_memory_mb(program.process.pid)
            print(f"{program.process.args[0].name}: {cpu / took:.2f} of a CPU, {most} MB")
            assert most < 400 and cpu < took
    finally:
        for writer in writers:
            end_of(writer)
        end_of(job)
    assert len(agent.end().splitlines()) < 20 * WRITERS, agent.said
    assert len(daemon.end().splitlines()) < 200, daemon.said
