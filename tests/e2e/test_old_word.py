# SPDX-License-Identifier: Apache-2.0
"""What is known is old: agents and daemons that are held, and jobs that are past what was seen."""
import json
import os
import pathlib
import signal
import subprocess
import sys
import time
import urllib.request

import pytest
from conftest import BUILD, ROLLCALL, VICTIMS, Service

SCRIPT = pathlib.Path(__file__)
QUICK = 0.2


def await_incident(daemon, state, seconds):
    """The newest incident as soon as it is in that state."""
    until = time.monotonic() + seconds
    incidents = []
    while time.monotonic() < until:
        incidents = newest(daemon)
        if incidents and incidents[0]["state"] == state:
            return incidents[0]
        time.sleep(QUICK)
    pytest.fail(f"no incident is {state}: {incidents}")


def newest(daemon):
    with urllib.request.urlopen(f"{daemon.page}/api/v1/incidents?limit=1", timeout=10) as answer:
        listed = json.load(answer).get("incidents", [])
    if not listed:
        return []
    with urllib.request.urlopen(f"{daemon.page}/api/v1/incident?id={listed[0]['id']}",
                                timeout=10) as answer:
        return [json.load(answer)]


@pytest.fixture
def two_hosts(tmp_path, start_daemon):
    """A job of ranks 0 and 1 on host b, 2 and 3 on host a, which have an agent each."""
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
            self.job.wait(timeout=20)

    yield Hosts
    for hosts in started:
        hosts.stop()


def test_nobody_of_a_host_whose_agent_is_held_is_blamed_for_what_another_does(two_hosts):
    hosts = two_hosts("3s")
    time.sleep(2)
    agent = hosts.agents["b"].process
    agent.send_signal(signal.SIGSTOP)
    time.sleep(1)
    hosts.stop_file.touch()
    suspected = await_incident(hosts.daemon, "suspected", 20)
    time.sleep(3)
    for incident in (suspected, *newest(hosts.daemon)):
        assert incident["state"] == "suspected", incident  # nothing is confirmed while b is held
        root = incident["verdicts"][0]
        assert [c["rank"] for c in root["culprits"]] == [3]
        assert root["certainty"] != "certain"
        assert root["evidence_age_seconds"] > 0.3
    agent.send_signal(signal.SIGCONT)
    confirmed = await_incident(hosts.daemon, "confirmed", 20)["verdicts"][0]
    assert (confirmed["cause"], confirmed["certainty"]) == ("missing_rank", "certain")
    assert [c["rank"] for c in confirmed["culprits"]] == [3]


def test_a_healthy_job_is_well_while_an_agent_is_held(two_hosts):
    hosts = two_hosts("3s")
    time.sleep(2)
    agent = hosts.agents["b"].process
    agent.send_signal(signal.SIGSTOP)
    time.sleep(13)  # its host is silent by then
    agent.send_signal(signal.SIGCONT)
    time.sleep(2)
    for incident in newest(hosts.daemon):
        assert "confirmed_at" not in incident, incident


def test_a_daemon_that_was_held_calls_nobody_lost_and_counts_anew(two_hosts):
    hosts = two_hosts("8s")
    time.sleep(1)
    hosts.stop_file.touch()
    time.sleep(1)
    daemon = hosts.daemon.process
    daemon.send_signal(signal.SIGSTOP)
    time.sleep(13)
    daemon.send_signal(signal.SIGCONT)
    for _ in range(20):  # until 5 s after that
        for incident in newest(hosts.daemon):
            assert incident["state"] == "suspected", incident
            assert incident["verdicts"][0]["cause"] == "missing_rank"
        time.sleep(0.25)
    verdict = await_incident(hosts.daemon, "confirmed", 20)["verdicts"][0]
    assert (verdict["cause"], verdict["certainty"]) == ("missing_rank", "certain")


def test_a_job_past_its_communicators_is_left_alone(tmp_path):
    reports = tmp_path / "reports"
    job = subprocess.run(
        [ROLLCALL, "run", "--sim", "--hang-after=8s", "--on-hang=abort",
         f"--report-dir={reports}", "--", VICTIMS / "ranks", "-n", "4", "--",
         sys.executable, SCRIPT.with_name("python_past.py")],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=80)
    assert job.returncode == 0, job.stderr
    assert not list(reports.glob("*/incident.json")), job.stderr
