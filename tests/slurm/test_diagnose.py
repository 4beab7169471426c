# SPDX-License-Identifier: Apache-2.0
"""`rollcall diagnose --slurm` of a job that runs without Rollcall, on a real Slurm."""
import json
import os
import pathlib
import signal

import pytest
from cluster import USER, Cluster
from conftest import victim

pytestmark = pytest.mark.long
HANG, CANNOT_TELL = 3, 2


@pytest.fixture(scope="module")
def cluster(make_cluster):
    return make_cluster(Cluster)


def diagnose(cluster, number, *flags, within=60):
    """As the job's user, from outside of its allocation."""
    return cluster.run("/usr/lib/rollcall/bin/rollcall", "diagnose", f"--slurm={number}", f"--within={within}s", *flags,
                       user=USER, timeout=120, check=False)


@pytest.fixture
def job(cluster):
    number = cluster.submit(victim("one_rank_stops_calling"), "-n2", "-N2")
    cluster.wait(lambda: "entered" in cluster.output(number).lower() or cluster.job(number)["JobState"] != "PENDING",
                 tell=lambda: cluster.output(number))
    yield number
    cluster.run("scancel", str(number), user=USER, check=False)
    cluster.wait_for_state(number, "CANCELLED", "COMPLETED", "FAILED")


# Both nodes are this machine, so each of them sees the processes of both; that no rank is blamed for it is not
# tested here, but that both nodes are looked at, through srun, beside the job's own step.
def test_both_nodes_of_a_job_are_looked_at(cluster, job):
    def look():
        done = diagnose(cluster, job, "--format=json")
        return done if done.returncode in (HANG, CANNOT_TELL) else None
    done = cluster.wait(look)
    assert "srun" not in done.stderr, done.stderr
    assert json.loads(done.stdout.splitlines()[0] if done.returncode == HANG else done.stdout) is not None
    text = diagnose(cluster, job)
    assert "did not answer" not in text.stdout, text.stdout
    assert cluster.job(job)["JobState"] == "RUNNING"
    assert not list(cluster.tmp.glob("rollcall-*"))


def test_a_node_that_does_not_answer_is_named(cluster, job):
    nsenter = cluster.processes[-1].pid  # of the slurmd of n2; it stops with its child
    slurmd = int(pathlib.Path(f"/proc/{nsenter}/task/{nsenter}/children").read_text().split()[0])
    os.kill(slurmd, signal.SIGSTOP)
    try:
        done = diagnose(cluster, job, within=15)
        assert "n2: " in done.stdout + done.stderr
    finally:
        os.kill(slurmd, signal.SIGCONT)
        os.kill(nsenter, signal.SIGCONT)


def test_a_job_that_does_not_run_is_said(cluster):
    number = cluster.submit("sleep 100", "--begin=now+1hour")
    done = diagnose(cluster, number)
    assert done.returncode == CANNOT_TELL
    assert "the job does not run: it is PENDING" in done.stderr
    cluster.run("scancel", str(number), user=USER)
    assert "scontrol" in diagnose(cluster, 999999).stderr
