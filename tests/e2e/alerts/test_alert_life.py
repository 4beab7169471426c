# SPDX-License-Identifier: Apache-2.0
"""What a receiver gets of a hang from its beginning to its end: the line of the culprit in the first message,
reminders until somebody takes care of it, one row for a job that flaps, and never "resolved" before the next
hang."""
import json
import os
import pwd
import re
import signal
import time

import pytest
from conftest import ROLLCALL, VICTIMS, ask, rollcall
from conftest import Service as Running
from processes import wait_for
from test_alerts import Service


@pytest.fixture
def receiver():
    service = Service(lambda *_: "")
    yield service
    service.close()


def messages(receiver):
    return [body for _, _, _, body in receiver.taken]


def statuses(receiver):
    return [one["status"] for one in messages(receiver)]


def first(receiver):
    return wait_for(lambda: messages(receiver))[0]


def listed(daemon):
    said = rollcall("incidents", f"--daemon={daemon.address}")
    assert said.returncode == 0, said.stderr
    return said.stdout


ME = pwd.getpwuid(os.geteuid()).pw_name


def test_the_first_message_of_a_contradiction_has_line_headline_and_numbers(
        start_daemon, start_job, receiver):
    """It is confirmed before the stacks are there."""
    daemon = start_daemon(f"--alert=json={receiver.url}", "--page-url=https://rollcall.example")
    start_job(daemon, victim="one_rank_broadcasts", name="gpt", said="rank 0")
    message = first(receiver)
    assert message["cause"] == "operation_mismatch"
    assert re.search(r"\.(cc|h):\d+ in ", message["at"]), message
    assert message["headline"].startswith("gpt hung: 4 GPUs idle since "), message["headline"]
    assert " UTC: rank 0 " in message["headline"]
    assert (message["idle"], message["attempt"], message["sequence"]) == (4, 0, 1)
    assert message["user"] == ME
    incident = message["incident"]
    assert message["link"] == f"https://rollcall.example/#/incident/{incident}"
    assert message["runbook"] == "https://rollcall.example/#/runbook/operation_mismatch"
    assert message["acknowledge"] == f"{message['link']}?do=acknowledge"
    time.sleep(3)
    assert statuses(receiver) == ["firing"], "nothing had to be corrected"


def test_people_are_reminded_until_one_of_them_takes_care_of_it(start_daemon, start_job, receiver):
    daemon = start_daemon(f"--alert=json={receiver.url}", "--alert-reminder=2s")
    start_job(daemon, name="gpt")
    wait_for(lambda: statuses(receiver)[:3] == ["firing", "reminder", "reminder"])
    assert "gpt still hangs after" in messages(receiver)[1]["headline"]
    incident = first(receiver)["incident"]
    assert rollcall("acknowledge", f"--daemon={daemon.address}", incident).returncode == 0
    wait_for(lambda: statuses(receiver)[-1] == "acknowledged")
    message = messages(receiver)[-1]
    assert message["acknowledged_by"] == ME
    assert message["headline"].startswith(f"gpt: {ME} takes care of {incident}: rank 3")
    known = len(messages(receiver))
    time.sleep(5)
    assert len(messages(receiver)) == known
    assert f"acknowledged by {ME}" in listed(daemon)
    assert ask(daemon, "status")["jobs"][0]["last_incident"]["acknowledged_by"] == ME


@pytest.mark.long
def test_a_job_that_flaps_is_one_row_of_messages(start_daemon, start_job, receiver, monkeypatch):
    monkeypatch.setenv("LAGS", "7")
    daemon = start_daemon(f"--alert=json={receiver.url}")
    start_job(daemon, victim="one_rank_lags_often", name="gpt", said=None)
    wait_for(lambda: "updated" in statuses(receiver), seconds=90)
    assert statuses(receiver) == ["firing", "updated"], messages(receiver)
    begun, again = messages(receiver)
    assert again["incident"] == begun["incident"]
    assert again["repeat"] >= 2
    assert "gpt hung again, " in again["headline"] and "same rank and line" in again["headline"]
    known = [one for one in ask(daemon, "incidents")["incidents"] if "confirmed_at" in one]
    assert {one["repeat"]["first"] for one in known} == {begun["incident"]}
    assert "same rank and line" in listed(daemon)


def test_the_attempt_that_goes_on_closes_the_incident_of_the_one_that_failed(start_daemon, receiver, tmp_path):
    """As torchrun --max-restarts starts them."""
    daemon = start_daemon(f"--alert=json={receiver.url}")
    ranks = f"{VICTIMS / 'ranks'} -n 4 --grace 1 --"
    script = (f"TORCHELASTIC_RESTART_COUNT=0 {ranks} {VICTIMS / 'one_rank_dies'}; "
              f"TORCHELASTIC_RESTART_COUNT=1 {ranks} {VICTIMS / 'pauses'}")
    job = Running([ROLLCALL, "run", "--sim", f"--daemon={daemon.address}", f"--report-dir={tmp_path / 'here'}",
                   "--", "sh", "-c", script], env={"ROLLCALL_JOB": "gpt"})
    try:
        wait_for(lambda: len(messages(receiver)) >= 2)
        assert statuses(receiver) == ["firing", "resolved"]
        assert messages(receiver)[1]["state"] == "resolved"
        assert "resolved, the job goes on in attempt 1" in messages(receiver)[1]["headline"]
        incident, = ask(daemon, "incidents")["incidents"]
        assert (incident["attempt"], incident["went_on_in"]) == (0, 1)
        assert "the job went on in attempt 1" in listed(daemon)
    finally:
        if job.process.poll() is None:
            job.kill()


def test_a_hang_that_lasts_costs_more_each_second(start_daemon, start_job):
    daemon = start_daemon()
    start_job(daemon, name="gpt")
    cost = wait_for(lambda: ask(daemon, "incidents")["incidents"])[0]["lost_rank_seconds"]
    time.sleep(3)
    assert ask(daemon, "incidents")["incidents"][0]["lost_rank_seconds"] >= cost + 8
    for flags in (["--format=csv"], ["--by=cause", "--format=json"], ["--group", "--format=json"]):
        before = lost(rollcall("incidents", f"--daemon={daemon.address}", *flags).stdout)
        time.sleep(2)
        assert before < lost(rollcall("incidents", f"--daemon={daemon.address}", *flags).stdout), flags


def lost(text):
    """The cost in an answer of JSON or CSV."""
    if text.startswith("{"):
        answer = json.loads(text)
        return (answer.get("counts") or answer.get("groups"))[0]["lost_rank_seconds"]
    head, row = (line.split(",") for line in text.splitlines()[:2])
    return float(row[head.index("lost_rank_seconds")])


def test_a_job_that_sigterm_ended_did_not_end_in_good_order(start_daemon, start_job):
    daemon = start_daemon()
    start_job(daemon, victim="one_rank_stops_when_told", name="gpt", said=None)
    wait_for(lambda: [one for one in ask(daemon, "status")["jobs"] if one["processes"] == 4])
    for process in ask(daemon, "processes?job=gpt")["processes"]:
        os.kill(process["pid"], signal.SIGTERM)
    status = wait_for(lambda: [one for one in ask(daemon, "status")["jobs"] if one["state"] == "ended"],
                      seconds=60)[0]
    assert status["processes_exited"] == 0, status
