# SPDX-License-Identifier: Apache-2.0
"""What people add to an incident, and which alerts they do not want for a time: by the command line and
over HTTP, across a restart of the daemon."""
import json
import re
import signal
import subprocess
import time
import urllib.error
import urllib.request

import pytest
from conftest import ROLLCALL, ask, reports_in, wait_for


def read_alerts(file):
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def rollcall(daemon, *arguments, code=0):
    done = subprocess.run([ROLLCALL, arguments[0], f"--daemon={daemon.address}", *arguments[1:]],
                          capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == code, done
    return done.stdout + done.stderr


def as_json(daemon, *arguments):
    return json.loads(rollcall(daemon, *arguments, "--format=json"))


def post(daemon, path):
    request = urllib.request.Request(f"{daemon.page}/api/v1/{path}", method="POST",
                                     headers={"X-Rollcall": "1"})
    with urllib.request.urlopen(request, timeout=120) as answer:
        return json.load(answer)


@pytest.fixture
def watched(start_daemon, tmp_path):
    """start() -> a daemon whose alerts are lines of a file; again: the same daemon, restarted."""
    sent = tmp_path / "alerts"
    flags = [f"--history={tmp_path / 'history.db'}", f"--alert=exec=cat >> {sent}; echo >> {sent}"]

    def start(again=None):
        if again is None:
            return start_daemon(*flags)
        again.kill(signal.SIGKILL)
        return start_daemon(f"--listen={again.address}", *flags)

    return start, lambda: [alert["status"] for alert in read_alerts(sent)]


def hung(daemon):
    """The confirmed incident of the daemon's only job."""
    def confirmed():
        return [one for one in ask(daemon, "incidents")["incidents"] if one["state"] == "confirmed"]
    return wait_for(confirmed)[0]


def test_a_note_and_an_acknowledgement_are_in_the_report_and_outlive_the_daemon(watched, start_job,
                                                                                tmp_path):
    start, _ = watched
    daemon = start()
    start_job(daemon)
    incident = hung(daemon)["id"]
    said = rollcall(daemon, "note", incident, "the switch of", "rack 4")
    assert "the switch of rack 4" in said
    assert "acknowledged by" in rollcall(daemon, "acknowledge", incident)
    wait_for(lambda: reports_in(tmp_path / "daemon-reports"))
    report, = reports_in(tmp_path / "daemon-reports")
    wait_for(lambda: "rack 4" in (report / "report.txt").read_text())
    kept = wait_for(lambda: json.loads((report / "incident.json").read_text()).get("notes"))
    assert kept[0]["text"] == "the switch of rack 4"

    daemon = start(daemon)
    wait_for(lambda: ask(daemon, f"incident?id={incident}")["notes"])
    text = rollcall(daemon, "report", incident)
    assert "the switch of rack 4" in text and "acknowledged" in text
    rollcall(daemon, "acknowledge", "--take-back", incident)
    # An answer over HTTP may be a second old.
    wait_for(lambda: "acknowledged" not in ask(daemon, f"incident?id={incident}"))


def test_wrong_ids_are_errors_that_say_what_to_type(watched, start_job):
    daemon = watched[0]()
    said = rollcall(daemon, "note", "nosuch-1", "text", code=1)
    assert "nosuch-1" in said and "rollcall incidents" in said
    said = rollcall(daemon, "silence", "--end=silence-1", code=1)
    assert 'no silence "silence-1" lasts now' in said
    assert "1m to 720h" in rollcall(daemon, "silence", "--job=*", "--for=1s", code=2)
    assert rollcall(daemon, "silence") == "no silences\n"


def test_a_silence_holds_an_alert_back_across_a_restart_until_it_is_ended(watched, start_job):
    start, statuses = watched
    daemon = start()
    silence = as_json(daemon, "silence", "--job=*", "--for=2h", "--comment=new switches")
    start_job(daemon)
    incident = hung(daemon)
    assert incident["silenced"]["id"] == silence["id"]
    said = rollcall(daemon, "silence")
    assert "job *" in said and "new switches" in said and "1 incident so far" in said
    assert "silenced until" in rollcall(daemon, "report", incident["id"])

    daemon = start(daemon)
    time.sleep(12)  # the agents come back, and a wrong alert would come
    assert hung(daemon)["id"] == incident["id"]
    assert statuses() == []
    rollcall(daemon, "silence", f"--end={silence['id']}")
    wait_for(lambda: statuses() == ["firing"])
    wait_for(lambda: "silenced" not in hung(daemon))  # an answer over HTTP may be a second old
    wait_for(lambda: ask(daemon, "silences")["silences"] == [])


@pytest.mark.long
def test_a_silence_for_another_host_holds_nothing_back(watched, start_job):
    daemon = watched[0]()
    post(daemon, "silence?host=node-with-another-name&for=1h")
    start_job(daemon)
    wait_for(lambda: watched[1]() == ["firing"])
    assert ask(daemon, "silences")["silences"][0]["incidents"] == 0


@pytest.mark.parametrize("query, words", [
    ("for=1h", "a silence needs a job, a host or a cause"),
    ("job=x", "for: "),
    ("job=x&for=31d", "for: "),
    ("job=x&for=1000h", "lasts from 1m to 720h"),
])
def test_a_wrong_silence_is_an_error_with_the_right_form(watched, query, words):
    daemon = watched[0]()
    with pytest.raises(urllib.error.HTTPError) as refused:
        post(daemon, f"silence?{query}")
    assert refused.value.code == 400
    assert words in refused.value.read().decode()


def test_what_operators_do_is_in_the_audit(watched, start_job):
    daemon = watched[0]()
    rollcall(daemon, "silence", "--job=llm-*", "--for=90m")
    said = daemon.end()
    assert "silence, job llm-*, for 1h30m" in said


def test_the_audit_tells_of_an_action_that_was_refused_and_by_whom(start_daemon, tmp_path):
    def token(name, role):
        made = subprocess.run([ROLLCALL, "token", "new", f"--file={tmp_path / 'tokens'}", f"--name={name}",
                               f"--role={role}"], capture_output=True, text=True, timeout=120, check=True)
        file = tmp_path / name
        file.write_text(made.stdout)
        file.chmod(0o600)
        return file

    viewer, operator = token("vera", "viewer"), token("otto", "operator")
    daemon = start_daemon(f"--token-file={tmp_path / 'tokens'}")
    for command in (["silence", "--job=*"], ["silence", "--job=*"], ["acknowledge", "train-1"]):
        said = rollcall(daemon, *command, f"--token-file={viewer}", code=1)
        assert "needs the role operator" in said
    rollcall(daemon, "silence", "--end=silence-1", f"--token-file={operator}", code=1)
    said = daemon.end()
    assert re.search(r"audit: .*vera.* \(ipv4:127\.0\.0\.1:\d+\): refused: silence, needs the role operator", said)
    assert len(re.findall(r"refused: silence, needs", said)) == 1, "once a minute"
    assert re.search(r"audit: .*vera.*: refused: note or acknowledge, needs the role operator", said)
    assert re.search(r'audit: .*otto.*: refused: end silence, no silence "silence-1" lasts now', said)


@pytest.mark.long
def test_what_the_daemon_has_answered_outlives_a_kill_in_the_next_moment(watched):
    start, _ = watched
    daemon = start()
    made = [post(daemon, f"silence?job=job-{number}&for=2h")["id"] for number in range(60)]
    post(daemon, f"silence/end?id={made.pop()}")
    daemon = start(daemon)
    kept = wait_for(lambda: ask(daemon, "silences").get("silences"))
    assert sorted(one["id"] for one in kept) == sorted(made)


@pytest.mark.long
def test_beyond_the_limit_of_silences_the_error_says_what_to_do(watched):
    daemon = watched[0]()
    for _ in range(500):
        post(daemon, "silence?job=x&for=1h")
    with pytest.raises(urllib.error.HTTPError) as refused:
        post(daemon, "silence?job=x&for=1h")
    assert refused.value.code == 409
    assert "there are 500 silences" in (text := refused.value.read().decode()) and "end one first" in text
    assert "end one first" in rollcall(daemon, "silence", "--job=x", code=1)
