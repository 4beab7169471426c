# SPDX-License-Identifier: Apache-2.0
"""`rollcall report ID --trace=FILE` of jobs that really hang."""
import json
import os
import pathlib

import pytest
import trace_format
from conftest import ask, rollcall, wait_for


def trace(daemon, *arguments, **options):
    return rollcall("report", f"--daemon={daemon.address}", *arguments, **options)


@pytest.fixture
def hung(hung_daemon):
    """(daemon, id of its incident): rank 3 does not call, the others wait."""
    return hung_daemon, ask(hung_daemon, "incidents")["incidents"][0]["id"]


def test_the_trace_of_a_live_incident_has_the_calls_of_all_ranks(hung, tmp_path):
    daemon, incident = hung
    file = tmp_path / "hang.json"
    done = trace(daemon, incident, f"--trace={file}")
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
    assert "calls of 4 ranks, from " in done.stderr and "ui.perfetto.dev" in done.stderr
    written = json.loads(file.read_text())
    calls = trace_format.check(written)
    assert sorted(calls) == [0, 1, 2, 3]
    known = {rank["rank"]: rank["communicators"] for rank in
             ask(daemon, "calls?job=a-job&ranks=0-3&limit=1024")["ranks"]}
    for rank, communicators in known.items():
        assert len(calls[rank]) == sum(len(one["calls"]) for one in communicators)
    verdict = ask(daemon, f"incident?id={incident}")["verdicts"][0]
    owed = f"AllReduce #{int(verdict['call']['position'])}"
    for rank in (0, 1, 2):
        last = calls[rank][-1]
        assert (last["ph"], last["name"], last["args"]["state"]) == ("B", owed, "waits")
        assert last["args"]["cause"] == "missing_rank"
        assert last["args"]["culprits"] == "3"
        assert last["args"]["certainty"] == verdict["certainty"]
        assert "culprit" not in last["args"]
    assert all(call["ph"] == "X" and call["args"]["culprit"] for call in calls[3])
    assert all(call["args"]["count"] > 0 and call["args"]["dtype"] for call in calls[3]
               if call["name"].startswith("AllReduce"))
    assert written["otherData"]["incident"] == incident
    assert written["otherData"]["source"] == "calls"


def test_only_the_ranks_that_are_asked_for(hung, tmp_path):
    daemon, incident = hung
    file = tmp_path / "hang.json"
    done = trace(daemon, incident, f"--trace={file}", "--rank=1,3")
    assert done.returncode == 0, done.stderr
    assert sorted(trace_format.check(json.loads(file.read_text()))) == [1, 3]
    assert file.stat().st_mode & 0o777 == 0o666 & ~read_umask()


def read_umask():
    mask = os.umask(0o022)
    os.umask(mask)
    return mask


def test_the_trace_goes_to_a_pipe_and_beside_the_report(hung, tmp_path):
    daemon, incident = hung
    done = trace(daemon, incident, "--trace=/dev/stdout")
    assert done.returncode == 0, done.stderr
    trace_format.check(json.loads(done.stdout))
    file = tmp_path / "hang.json"
    done = trace(daemon, incident, f"--trace={file}", f"--report-dir={tmp_path / 'reports'}")
    assert done.returncode == 0, done.stderr
    trace_format.check(json.loads(file.read_text()))
    assert (pathlib.Path(done.stdout.strip()) / "incident.json").exists()


def test_an_anonymous_trace_has_no_names(hung, tmp_path):
    daemon, incident = hung
    file = tmp_path / "hang.json"
    done = trace(daemon, incident, f"--trace={file}", "--anonymize")
    assert done.returncode == 0, done.stderr
    trace_format.check(json.loads(file.read_text()))
    assert "a-job" in json.dumps(ask(daemon, f"incident?id={incident}"))
    for name in ("a-job", os.uname().nodename, "one_rank_stops_calling"):
        assert name not in file.read_text()


@pytest.mark.long
def test_an_incident_that_has_ended_has_the_calls_while_the_daemon_keeps_the_job(
        daemon, start_job, tmp_path):
    job = start_job(daemon)
    incident = ask(daemon, "incidents")["incidents"][0]["id"]
    job.kill()
    wait_for(lambda: ask(daemon, f"incident?id={incident}").get("closed_at"))
    file = tmp_path / "hang.json"
    done = trace(daemon, incident, f"--trace={file}")
    assert done.returncode == 0, done.stderr
    written = json.loads(file.read_text())
    assert sorted(trace_format.check(written)) == [0, 1, 2, 3]
    assert written["otherData"]["source"] == "calls"


@pytest.mark.long
def test_of_a_job_that_the_daemon_has_removed_the_trace_holds_the_waits_and_says_so(
        start_daemon, start_job, tmp_path):
    daemon = start_daemon("--keep-jobs=1s")
    job = start_job(daemon)
    incident = ask(daemon, "incidents")["incidents"][0]["id"]
    job.kill()
    wait_for(lambda: ask(daemon, f"incident?id={incident}").get("closed_at"))
    wait_for(lambda: not ask(daemon, "jobs").get("jobs"))
    file = tmp_path / "hang.json"
    done = trace(daemon, incident, f"--trace={file}")
    assert done.returncode == 0, done.stderr
    assert "no longer has the calls of this job" in done.stderr
    written = json.loads(file.read_text())
    calls = trace_format.check(written)
    assert sorted(calls) == [0, 1, 2]
    assert all(len(events) == 1 and events[0]["ph"] == "B" for events in calls.values())
    assert written["otherData"]["source"] == "incident"


def test_without_calls_and_without_waits_there_is_an_error_and_no_file(hung, tmp_path):
    daemon, incident = hung
    file = tmp_path / "hang.json"
    done = trace(daemon, incident, f"--trace={file}", "--rank=900")
    assert done.returncode == 1
    assert "no calls of rank 900" in done.stderr
    assert not file.exists()


def test_an_unknown_incident_is_an_error(daemon, tmp_path):
    file = tmp_path / "hang.json"
    done = trace(daemon, "no-such-incident", f"--trace={file}")
    assert done.returncode == 1
    assert "no incident" in done.stderr and "Traceback" not in done.stderr
    assert not file.exists()


@pytest.mark.parametrize("place, problem", [
    ("no/such/folder/hang.json", "No such file or directory"),
    (".", "Is a directory"),
    ("/dev/full", "No space left on device"),
])
def test_a_file_that_cannot_be_written_is_an_error_with_its_reason(hung, tmp_path, place, problem):
    daemon, incident = hung
    done = trace(daemon, incident, f"--trace={tmp_path / place}")
    assert done.returncode == 1
    assert f"cannot write {tmp_path / place}: {problem}" in done.stderr
    assert "give --trace a file" in done.stderr
    assert list(tmp_path.glob("*.tmp")) == []


@pytest.mark.parametrize("flags, words", [
    (["--rank=0-3"], "--trace"),
    (["--trace=x.json", "--rank=3,1"], "not a list of at most 64 ranks"),
    (["--trace=x.json", "--rank=0-64"], "not a list of at most 64 ranks"),
])
def test_wrong_flags_are_refused_before_a_daemon_is_asked(flags, words):
    done = rollcall("report", "--daemon=127.0.0.1:1", "an-incident", *flags)
    assert done.returncode == 2
    assert words in done.stderr
