# SPDX-License-Identifier: Apache-2.0
"""Calls that all ranks have entered and that do not end: the transfers over the network name rank and peer."""
import os
import subprocess

import pytest
from conftest import BUILD, ROLLCALL, VICTIMS, ask, long, wait_for
from processes import Service

# A hang is suspected after half of it: by then a transfer has stood still for longer than one that is only
# slow.
HANG_AFTER = "8s"
STANDS = "rank 2: its GPU does not produce what it must send to rank 3"


def start_ranks(segments, fault, arguments=(), env=None, own_host=False):
    """Four ranks that move their data over a network with this fault. Each has a folder of its own.

    own_host: and a host name, which its segment has.
    """
    for rank in range(4):
        (segments / str(rank)).mkdir(mode=0o700, parents=True)
    own = f'ROLLCALL_DIR="{segments}/$RANK" exec "$@"'
    shell = ["sh", "-c", own, "sh"]
    if own_host:
        shell = ["unshare", "--uts", "sh", "-c", f'hostname "node-$RANK"; {own}', "sh"]
    return Service([VICTIMS / "ranks", "-n", "4", "--keep-going", "--", *shell,
                    VICTIMS / "healthy_mix", *arguments],
                   env={"ROLLCALL_SIM_NETWORK": "socket", "ROLLCALL_SIM_NETWORK_FAULT": fault,
                        "ROLLCALL_JOB": "a-job", "LD_PRELOAD": str(BUILD / "lib" / "librollcall.so"),
                        "LD_LIBRARY_PATH": str(BUILD / "sim"), **(env or {})})


@pytest.fixture
def job_on_hosts(start_daemon, tmp_path):
    """job_on_hosts(fault) -> daemon, job: each rank is the only one of its host, which has an agent.

    agent_flags: of all agents.
    """
    services = []

    def start(fault, arguments=(), env=None, agent_flags=()):
        daemon = start_daemon(f"--hang-after={HANG_AFTER}")
        job = start_ranks(tmp_path / "segments", fault, arguments, env)
        services.append(job)
        for rank in range(4):
            services.append(Service([BUILD / "bin" / "rollcall-agent", f"--daemon={daemon.address}",
                                     f"--dir={tmp_path / 'segments' / str(rank)}", "--scope=directory",
                                     f"--host=node-{rank}", *agent_flags]))
        return daemon, job

    yield start
    for service in services:
        if service.process.poll() is None:
            service.kill()


def confirmed(daemon):
    """The only incident, once it is confirmed."""
    incidents = ask(daemon, "incidents")["incidents"]
    assert len(incidents) <= 1, incidents
    if not incidents or not incidents[0].get("confirmed_at"):
        return None
    return ask(daemon, f"incident?id={incidents[0]['id']}")


@pytest.mark.parametrize("fault, rank, peer, named", [
    ("kernel:2@3", 2, 3, "own_gpu"),
    long("link:1@3", 1, 2, "link"),
])
def test_the_verdict_names_the_rank_whose_transfers_hold_up_a_call(job_on_hosts, fault, rank, peer, named):
    daemon, _ = job_on_hosts(fault)
    incident = wait_for(lambda: confirmed(daemon))
    verdict = incident["verdicts"][0]
    assert verdict["cause"] == "stalled_in_flight", verdict["summary"]
    assert verdict["certainty"] == "likely", verdict
    assert [c["rank"] for c in verdict["culprits"]] == [rank], verdict
    walk = verdict["network"]
    assert (walk["fault"], walk["rank"], walk["peer"]) == (named, rank, peer), walk
    assert 1 <= walk["agreeing"] <= walk["channels"] <= 2
    assert walk["hops"][-1]["rank"] == rank
    asked = {stack["rank"] for stack in incident["stacks"] if stack["network"]}
    assert asked == {0, 1, 2, 3}, "every member of the call was asked"


def test_a_slow_kernel_is_no_hang_and_nobody_is_accused(job_on_hosts):
    # Each of the 16 steps of a call takes rank 2 20 ms.
    daemon, job = job_on_hosts("slow:2", arguments=["2"])
    assert job.process.wait(timeout=120) == 0
    assert ask(daemon, "incidents")["incidents"] == []


def test_without_the_states_the_verdict_is_as_before(job_on_hosts):
    daemon, _ = job_on_hosts("kernel:2@3", env={"ROLLCALL_NETWORK": "0"})
    incident = wait_for(lambda: confirmed(daemon))
    verdict = incident["verdicts"][0]
    assert verdict["cause"] == "stalled_in_flight", verdict["summary"]
    assert "network" not in verdict
    assert all(stack["network"] == [] for stack in incident["stacks"])


@pytest.mark.long
def test_an_agent_without_stacks_reports_the_states(job_on_hosts):
    daemon, _ = job_on_hosts("kernel:2@3", agent_flags=["--stacks=off"])
    incident = wait_for(lambda: confirmed(daemon))
    verdict = incident["verdicts"][0]
    assert (verdict["network"]["fault"], verdict["network"]["rank"]) == ("own_gpu", 2), verdict
    assert not any(stack["threads"] for stack in incident["stacks"])


def test_the_report_tells_the_way_over_the_transfers(job_on_hosts, tmp_path):
    job_on_hosts("kernel:2@3")

    def report():
        return " ".join(text.read_text() for text in tmp_path.glob("daemon-reports/*/report.txt"))

    wait_for(lambda: STANDS in " ".join(report().split()))
    assert "Inside the call" in report()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to give ranks host names of their own")
def test_analyze_walks_over_the_states_in_the_segments(tmp_path):
    segments = tmp_path / "segments"
    job = start_ranks(segments, "kernel:2@3", own_host=True)

    def analyze():
        said = subprocess.run([ROLLCALL, "analyze", "--from=segments", segments], text=True,
                              capture_output=True, env=os.environ, check=False).stdout
        return " ".join(said.split())

    try:
        wait_for(lambda: STANDS in analyze())
    finally:
        job.kill()
    said = analyze()
    assert STANDS in said
    assert "segments show the last moment" in said
