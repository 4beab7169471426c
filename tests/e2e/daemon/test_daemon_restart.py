# SPDX-License-Identifier: Apache-2.0
"""A daemon that is killed and started again during a hang continues the incident: one id, one
attempt, one report, one alert."""
import json
import signal
import time
import urllib.request

import pytest
from conftest import ask, reports_in, wait_for

# A known hang pages no person, however often the daemon restarts.
RESTARTS = 3


def read_alerts(file):
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def list_incidents(daemon):
    return ask(daemon, "incidents")["incidents"]


@pytest.mark.long
def test_a_daemon_that_is_killed_three_times_continues_the_incident(start_daemon, start_job,
                                                                   tmp_path):
    sent = tmp_path / "alerts"
    flags = [f"--history={tmp_path / 'history.db'}", f"--alert=exec=cat >> {sent}; echo >> {sent}"]
    daemon = start_daemon(*flags)
    job = start_job(daemon)
    reports = tmp_path / "daemon-reports"
    wait_for(lambda: len(read_alerts(sent)) == 1)
    wait_for(lambda: reports_in(reports))
    known = list_incidents(daemon)
    assert len(known) == 1 and known[0]["state"] == "confirmed"

    for _ in range(RESTARTS):
        daemon.kill(signal.SIGKILL)
        daemon = start_daemon(f"--listen={daemon.address}", *flags)
        assert list_incidents(daemon)[0]["state"] == "confirmed", "before the agents are back"
        time.sleep(12)  # the agents come back, and a wrong alert or end would come
        now = list_incidents(daemon)
        assert [incident["id"] for incident in now] == [known[0]["id"]]
        assert now[0]["state"] == "confirmed"
        assert now[0]["verdicts"][0]["cause"] == known[0]["verdicts"][0]["cause"]

    assert [alert["status"] for alert in read_alerts(sent)] == ["firing"]
    assert len(list(reports.iterdir())) == 1

    job.kill()
    wait_for(lambda: len(read_alerts(sent)) == 2)
    time.sleep(2)  # a third alert would come now
    alerts = read_alerts(sent)
    assert [alert["status"] for alert in alerts] == ["firing", "resolved"]
    assert len({alert["idempotency_key"] for alert in alerts}) == 2
    assert [incident["state"] for incident in list_incidents(daemon)] == ["ended"]


def test_a_restarted_daemon_continues_the_attempt_that_hangs(start_daemon, start_job, tmp_path):
    sent = tmp_path / "alerts"
    flags = [f"--history={tmp_path / 'history.db'}", f"--alert=exec=cat >> {sent}; echo >> {sent}"]
    daemon = start_daemon(*flags)
    start_job(daemon, victim="pauses", said=None).process.wait(timeout=120)
    start_job(daemon)
    wait_for(lambda: len(read_alerts(sent)) == 1)
    time.sleep(1)
    known, = list_incidents(daemon)
    assert (known["attempt"], known["state"]) == (1, "confirmed")

    # No agent of the ended attempt 0 comes back: it ended with its job.
    daemon.kill(signal.SIGKILL)
    daemon = start_daemon(f"--listen={daemon.address}", *flags)
    time.sleep(12)
    now, = list_incidents(daemon)
    assert (now["id"], now["attempt"], now["state"]) == (known["id"], 1, "confirmed")
    with urllib.request.urlopen(f"{daemon.page}/api/v1/status") as answer:
        assert [job["attempt"] for job in json.load(answer)["jobs"]] == [1]
    assert [alert["status"] for alert in read_alerts(sent)] == ["firing"]
