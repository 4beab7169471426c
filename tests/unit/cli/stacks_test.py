# SPDX-License-Identifier: Apache-2.0
"""`rollcall stacks` of processes."""
import json
import os
import pathlib
import subprocess

import pytest
from command_line import rollcall


@pytest.fixture
def sleepers():
    """Two processes that sleep as ranks 5 and 6 of a job."""
    processes = [subprocess.Popen(["sleep", "60"], env={**os.environ, "RANK": str(rank)})
                 for rank in (5, 6)]
    while any(pathlib.Path(f"/proc/{p.pid}/comm").read_text() != "sleep\n" for p in processes):
        pass
    yield processes
    for process in processes:
        process.kill()
        process.wait()


def may_trace(pid):
    result = rollcall("stacks", pid)
    return result.returncode == 0 or "not permit" not in result.stderr


def test_stacks_prints_living_processes_which_keep_running(sleepers):
    if not may_trace(sleepers[0].pid):
        pytest.skip("this system does not permit tracing")
    pids = [p.pid for p in sleepers]
    each = rollcall("stacks", *pids)
    assert each.returncode == 0, each.stderr
    for pid, rank in zip(pids, (5, 6)):
        assert f"process {pid}, rank {rank}, 1 thread" in each.stdout
    assert each.stdout.count("nanosleep") >= 2
    merged = rollcall("stacks", "--merge", *pids)
    assert merged.stdout.startswith("[5-6] 2 ranks, 2 threads\n"), merged.stdout
    tree = json.loads(rollcall("stacks", "--format=json", *pids).stdout)
    assert (tree["ranks"], tree["threads"]) == ("5-6", 2)
    folded = rollcall("stacks", "--format=folded", *pids).stdout
    assert folded.splitlines()[-1].endswith(" 2") and ";" in folded
    assert rollcall("stacks", "--format=dot", *pids).stdout.startswith("digraph stacks {")
    assert all(process.poll() is None for process in sleepers)


@pytest.mark.parametrize("way", ["auto", "outside", "inside"])
def test_stacks_leaves_a_process_alone_that_switches_its_stacks_off(way):
    with subprocess.Popen(["sleep", "60"], env={**os.environ, "ROLLCALL_STACKS": "off"}) as process:
        result = rollcall("stacks", f"--way={way}", process.pid)
        process.kill()
    assert result.returncode == 1
    assert "switched off (ROLLCALL_STACKS=off in its environment)" in result.stderr


def test_stacks_reports_what_is_neither_a_job_nor_a_process():
    job = rollcall("stacks", "--daemon=127.0.0.1:1", "train")
    assert job.returncode == 1
    assert "no stacks of job train from the daemon at 127.0.0.1:1" in job.stderr
    assert "rollcall stacks PID" in job.stderr
    both = rollcall("stacks", os.getpid(), "train")
    assert both.returncode == 2 and "train: not a process number" in both.stderr
    gone = subprocess.Popen(["true"])
    gone.wait()
    ended = rollcall("stacks", gone.pid)
    assert ended.returncode == 1 and "has ended" in ended.stderr and ended.stdout == ""
    assert rollcall("stacks").returncode == 2
