# SPDX-License-Identifier: Apache-2.0
"""What a rank did while its host had no agent is told once the host has one again."""
import signal
import time

import oracle
import pytest
from cluster import Agent, Daemon, Disk, Job, wait_for

ADDRESS = "127.19.2.1"
HANG_AFTER = 3
SETTLE_SECONDS = 5  # for several ticks: the daemon confirms nothing on an agent's first ones
SILENT_SECONDS = 60  # until the daemon calls the host lost: 10, and a loaded machine's delay
RANKS, HOSTS = 4, 2


@pytest.fixture
def cluster(tmp_path):
    """A daemon, and a job whose ranks take turns on the hosts of two agents."""
    disk = Disk(tmp_path / "disk")
    daemon = Daemon(tmp_path, ADDRESS, disk, HANG_AFTER, f"http://{ADDRESS}:1/")
    agents = [Agent(tmp_path, f"node-{n}", f"{ADDRESS}:{Daemon.PORT}") for n in range(HOSTS)]
    job = Job(tmp_path, [agents[rank % HOSTS].folder for rank in range(RANKS)])
    yield daemon, agents, job
    job.kill()
    for program in [*agents, daemon, disk]:
        program.end()


def all_are_known(daemon):
    jobs = (daemon.try_ask("status") or {"jobs": []})["jobs"]
    return jobs and jobs[0]["processes_alive"] == RANKS and jobs[0]["communicators"]


def root_cause(daemon):
    """(state, cause, ranks) of the only incident."""
    incidents = daemon.incidents() or []
    assert len(incidents) <= 1, incidents
    for incident in incidents:
        root = incident["verdicts"][0]
        return incident["state"], root["cause"], oracle.culprits_of(root)
    return None


def test_a_rank_that_exited_while_its_agent_was_gone_is_named(cluster):
    daemon, agents, job = cluster
    wait_for("all ranks are known", 60, lambda: all_are_known(daemon))
    time.sleep(SETTLE_SECONDS)
    agents[1].stop(signal.SIGKILL)
    job.go_wrong("exit", 3)
    job.ranks[3].process.wait(timeout=120)
    wait_for("the host is lost", SILENT_SECONDS,
             lambda: root_cause(daemon) == ("confirmed", "host_lost", {1, 3}))
    agents[1].start()
    wait_for("the rank is named", 60,
             lambda: root_cause(daemon) == ("confirmed", "rank_exited", {3}))
