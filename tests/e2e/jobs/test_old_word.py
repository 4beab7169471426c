# SPDX-License-Identifier: Apache-2.0
"""Old facts: agents and daemons that are stopped, and jobs that are past their communicators."""
import os
import pathlib
import signal
import subprocess
import sys
import time

import pytest
from conftest import BUILD, ROLLCALL, VICTIMS, Service, ask, find_communicator, wait_for
from expected_verdict import has_certainty

SCRIPT = pathlib.Path(__file__)
# A step takes at least 10 ms, so the agents have sent several ticks after these steps.
STEPS = 50


def await_incident(daemon, state):
    """Waits until the newest incident is in that state, and returns it."""
    return wait_for(lambda: next((i for i in newest(daemon) if i["state"] == state), None))


def newest(daemon):
    listed = ask(daemon, "incidents?limit=1")["incidents"]
    return [ask(daemon, f"incident?id={incident['id']}") for incident in listed]


def await_steps(daemon, steps=STEPS):
    """Waits until the agents of both hosts have reported these steps."""
    wait_for(lambda: (comm := find_communicator(daemon)) and comm["position_min"] >= steps)


def is_behind(daemon):
    """Whether one host has reported STEPS fewer steps than the other."""
    comm = find_communicator(daemon)
    return comm["position_max"] - comm["position_min"] >= STEPS


def list_liveness(daemon):
    return [process["liveness"] for process in ask(daemon, "processes?job=a-job")["processes"]]


@pytest.fixture
def two_hosts(tmp_path, start_daemon):
    """A job with ranks 0 and 1 on host b, 2 and 3 on host a. Each host has an agent."""
    started = []

    class Hosts:
        stop_file = tmp_path / "stop"

        def __init__(self, hang_after):
            self.daemon = start_daemon(f"--hang-after={hang_after}")
            folders = {name: tmp_path / name for name in ("a", "b")}
            for folder in folders.values():
                folder.mkdir(mode=0o700)
            self.agents = {name: Service([BUILD / "bin" / "rollcall-agent", f"--host=host-{name}",
                                          f"--daemon={self.daemon.address}", f"--dir={folder}",
                                          "--scope=directory"])
                           for name, folder in folders.items()}
            rank = (f'test $RANK -lt 2 && export ROLLCALL_DIR={folders["b"]} '
                    f'|| export ROLLCALL_DIR={folders["a"]}; '
                    f'LD_PRELOAD={BUILD / "lib" / "librollcall.so"} '
                    f'exec {VICTIMS / "one_rank_stops_when_told"}')
            self.job = subprocess.Popen(
                [VICTIMS / "ranks", "-n", "4", "--", "/bin/sh", "-c", rank],
                env={**os.environ, "LD_LIBRARY_PATH": str(BUILD / "sim"), "ROLLCALL_JOB": "a-job",
                     "STOP_FILE": str(self.stop_file)})
            started.append(self)

        def stop(self):
            for agent in self.agents.values():
                agent.process.send_signal(signal.SIGCONT)
                agent.kill()
            self.job.terminate()
            self.job.wait(timeout=120)

    yield Hosts
    for hosts in started:
        hosts.stop()


def test_no_rank_of_a_stopped_agent_is_blamed_for_another_rank(two_hosts):
    hosts = two_hosts("3s")
    await_steps(hosts.daemon)
    agent = hosts.agents["b"].process
    agent.send_signal(signal.SIGSTOP)
    wait_for(lambda: is_behind(hosts.daemon))
    hosts.stop_file.touch()
    suspected = await_incident(hosts.daemon, "suspected")
    time.sleep(3)  # as long as --hang-after
    for incident in (suspected, *newest(hosts.daemon)):
        assert incident["state"] == "suspected", incident  # confirms nothing while b is stopped
        root = incident["verdicts"][0]
        assert [c["rank"] for c in root["culprits"]] == [3]
        assert root["certainty"] != "certain"
        assert root["evidence_age_seconds"] > 0.3
    agent.send_signal(signal.SIGCONT)
    confirmed = await_incident(hosts.daemon, "confirmed")["verdicts"][0]
    assert confirmed["cause"] == "missing_rank" and has_certainty(confirmed, "certain")
    assert [c["rank"] for c in confirmed["culprits"]] == [3]


@pytest.mark.long
def test_a_healthy_job_has_no_incident_while_an_agent_is_stopped(two_hosts):
    hosts = two_hosts("3s")
    await_steps(hosts.daemon)
    agent = hosts.agents["b"].process
    agent.send_signal(signal.SIGSTOP)
    wait_for(lambda: list_liveness(hosts.daemon).count("silent") == 2)
    agent.send_signal(signal.SIGCONT)
    await_steps(hosts.daemon, find_communicator(hosts.daemon)["position_max"] + STEPS)
    assert list_liveness(hosts.daemon) == ["alive"] * 4
    for incident in ask(hosts.daemon, "incidents")["incidents"]:
        assert "confirmed_at" not in incident, incident


@pytest.mark.long
def test_a_daemon_that_was_stopped_reports_no_lost_host_and_counts_anew(two_hosts):
    hosts = two_hosts("8s")
    await_steps(hosts.daemon)
    hosts.stop_file.touch()
    wait_for(lambda: find_communicator(hosts.daemon)["waiting"] == 3)
    daemon = hosts.daemon.process
    daemon.send_signal(signal.SIGSTOP)
    time.sleep(13)  # longer than the wait of a hang, and than an agent may be silent
    daemon.send_signal(signal.SIGCONT)
    for _ in range(20):  # until 5 s after that
        for incident in newest(hosts.daemon):
            assert incident["state"] == "suspected", incident
            assert incident["verdicts"][0]["cause"] == "missing_rank"
        time.sleep(0.25)
    verdict = await_incident(hosts.daemon, "confirmed")["verdicts"][0]
    assert verdict["cause"] == "missing_rank" and has_certainty(verdict, "certain")


def test_a_host_that_falls_silent_with_its_ranks_is_likely_lost(two_hosts):
    hosts = two_hosts("3s")
    await_steps(hosts.daemon)
    gone = [process["pid"] for process in ask(hosts.daemon, "processes?job=a-job")["processes"]
            if process["host"] == "host-b"] + [hosts.agents["b"].process.pid]
    for pid in gone:
        os.kill(pid, signal.SIGSTOP)
    try:
        root = await_incident(hosts.daemon, "confirmed")["verdicts"][0]
    finally:
        for pid in gone:
            os.kill(pid, signal.SIGCONT)
    assert (root["cause"], root["certainty"]) == ("host_lost", "likely"), root["summary"]
    assert [c["rank"] for c in root["culprits"]] == [0, 1]
    assert root["waiting_ranks"] == [2, 3]


def test_a_job_past_its_communicators_has_no_incident(tmp_path):
    reports = tmp_path / "reports"
    job = subprocess.run(
        [ROLLCALL, "run", "--sim", "--hang-after=8s", "--on-hang=abort",
         f"--report-dir={reports}", "--", VICTIMS / "ranks", "-n", "4", "--",
         sys.executable, SCRIPT.with_name("python_past.py")],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120)
    assert job.returncode == 0, job.stderr
    assert not list(reports.glob("*/incident.json")), job.stderr
