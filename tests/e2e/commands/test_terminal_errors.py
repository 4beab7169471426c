# SPDX-License-Identifier: Apache-2.0
"""What people type wrongly: each is an error that says what to type, and none is ignored in silence."""
import json
import os
import subprocess

import pytest
from conftest import ROLLCALL, rollcall

NO_TEXT = b"rack \xff4"  # not UTF-8


def ask(daemon, *arguments):
    return rollcall(*arguments, env={**os.environ, "ROLLCALL_DAEMON": daemon.address})


def one(*arguments):
    """Without a daemon: the error must come before anybody is asked."""
    return rollcall(*arguments, env={**os.environ, "ROLLCALL_DAEMON": "127.0.0.1:1"})


def test_incidents_of_a_job_that_there_is_not_are_an_error_as_of_status(hung_daemon):
    for command in ("incidents", "status"):
        unknown = ask(hung_daemon, command, "a-jop")
        assert (unknown.returncode, unknown.stdout) == (1, ""), command
        assert 'no job "a-jop"' in unknown.stderr and "did you mean a-job?" in unknown.stderr
    assert "no attempt 7" in ask(hung_daemon, "incidents", "--attempt=7", "a-job").stderr
    known = ask(hung_daemon, "incidents", "--cause=host_lost", "a-job")
    assert known.returncode == 0
    assert known.stdout == 'no incidents of job "a-job" of cause host_lost\n'


@pytest.mark.long
def test_a_job_that_only_the_history_knows_is_known(start_daemon, start_job, tmp_path):
    history = f"--history={tmp_path / 'history.db'}"
    first = start_daemon(history)
    start_job(first).kill()
    first.kill()
    next_one = start_daemon(history, "--keep-jobs=1s")
    assert ask(next_one, "incidents", "a-job").stdout.count("missing_rank") == 1
    assert ask(next_one, "incidents", "--cause=host_lost", "a-job").returncode == 0
    assert ask(next_one, "incidents", "nosuch").returncode == 1


def test_an_unknown_cause_is_refused_with_the_causes():
    for command in (("incidents",), ("silence", "--job=x")):
        wrong = one(*command, "--cause=mising_rank")
        assert wrong.returncode == 2
        assert "mising_rank" in wrong.stderr and "missing_rank" in wrong.stderr
        assert "straggler" in wrong.stderr


def test_without_incidents_the_line_says_of_what_there_are_none(daemon, start_job):
    assert ask(daemon, "incidents").stdout == "no incidents\n"
    host = ask(daemon, "incidents", "--host=node-1")
    assert (host.returncode, host.stdout) == (0, 'no incidents with a culprit on host "node-1"\n')
    assert json.loads(ask(daemon, "incidents", "--host=node-1", "--format=json").stdout)["total"] == 0
    assert "of tenant lab" in ask(daemon, "incidents", "--tenant=lab").stdout
    assert "in that time" in ask(daemon, "incidents", "--from=2020-01-01", "--until=2020-01-02").stdout
    start_job(daemon)
    assert ask(daemon, "incidents", "--offset=9").stdout.startswith("0 of 1; more:")


@pytest.mark.parametrize("command, named", [
    (["note", b"a-job-1", NO_TEXT], "TEXT"),
    (["silence", "--job=x", b"--comment=" + NO_TEXT], "--comment"),
    (["silence", b"--job=" + NO_TEXT], "--job"),
    (["status", NO_TEXT], "JOB"),
    (["stacks", NO_TEXT], "JOB|PID"),
    (["acknowledge", NO_TEXT], "ID"),
    (["incidents", b"--signature=" + NO_TEXT], "--signature"),
    (["incidents", b"--tenant", NO_TEXT], "--tenant"),
])
def test_words_that_are_no_text_are_refused_by_their_name(command, named):
    wrong = one(*command)
    assert wrong.returncode == 2
    assert f"{named}: " in wrong.stderr and "UTF-8" in wrong.stderr
    assert "rack ?4" in wrong.stderr and "protobuf" not in wrong.stderr


def test_a_file_may_have_any_name(tmp_path):
    name = os.fsencode(tmp_path) + b"/log-\xff"
    with open(name, "w") as log:
        log.write("RuntimeError: CUDA error: an illegal memory access was encountered\n")
    assert one("explain", name).returncode != 2
    assert "UTF-8" not in one("analyze", name).stderr


@pytest.mark.parametrize("command, words", [
    (["silence", "--for=1h"], "--job=NAME"),
    (["silence", "--comment=why"], "--job=NAME"),
    (["silence", "--tenant=lab"], "--job=NAME"),
    (["silence", "--end=silence-1", "--job=x"], "--job"),
    (["silence", "--end=silence-1", "--for=1h"], "--for"),
    (["silence", "--end", ""], "--end=ID"),
    (["silence", "--job=x", "--for=1s"], "1m to 720h"),
    (["status", "--attempt=1"], "rollcall status --attempt=1 JOB"),
    (["status", "--tenant=lab"], "rollcall status --tenant=lab JOB"),
    (["watch", "--attempt=1"], "rollcall watch --attempt=1 JOB"),
    (["stacks", "--rank=0", str(os.getpid())], "--rank"),
    (["stacks", "--host=node-1", str(os.getpid())], "--host"),
    (["stacks", "--attempt=1", str(os.getpid())], "--attempt"),
    (["stacks", "--each", "--format=json", "a-job"], "--each"),
    (["report", "--format=json", "--report-dir=/tmp", "a-job-1"], "--format"),
    (["report", "--format=json", "--trace=/tmp/no", "a-job-1"], "--format"),
    (["man", "--output-dir=/tmp/no", "run"], "COMMAND"),
    (["token", "list", "--file=/dev/null", "--expires=1d"], "--expires"),
    (["token", "revoke", "--file=/dev/null", "--name=x", "--role=viewer"], "--role"),
    (["incidents", "--from=2026-01-02", "--until=2026-01-01"], "--until"),
    (["incidents", "--group", "--limit=51"], "at most 50"),
    (["run", "--tls-ca=/tmp/ca.crt", "--", "true"], "--daemon=HOST:PORT"),
])
def test_a_flag_that_would_do_nothing_is_an_error_that_says_what_to_type(command, words):
    wrong = one(*command) if command[0] != "run" else rollcall(*command)
    assert wrong.returncode == 2, wrong
    assert words in wrong.stderr and wrong.stdout == ""


def test_flags_of_the_environment_are_for_all_commands():
    known = rollcall("man", "run", env={**os.environ, "ROLLCALL_FORMAT": "json"})
    assert known.returncode == 0
    env = {**os.environ, "ROLLCALL_FORMAT": "json", "ROLLCALL_DAEMON": "127.0.0.1:1"}
    assert rollcall("report", "--report-dir=/tmp", "a-job-1", env=env).returncode == 1  # no daemon


def test_what_the_daemon_refuses_as_wrong_is_said_in_words_of_the_command_line(hung_daemon):
    for command in (["note", "a-job-1", " "], ["note", "a-job-1", "x" * 2001],
                    ["silence", "--job=x", "--comment=" + "x" * 501],
                    ["silence", "--job=x", "--tenant=*"]):
        wrong = ask(hung_daemon, *command)
        assert wrong.returncode == 2, wrong
        assert "=..." not in wrong.stderr and f"rollcall {command[0]} --help" in wrong.stderr
    for command in (["note", "nosuch-1", "text"], ["acknowledge", "--take-back", "a-job-1"],
                    ["silence", "--end=silence-1"]):
        assert ask(hung_daemon, *command).returncode == 1


@pytest.mark.parametrize("name", ["/nonexistent.log", "run.log", "logs/of-rank-3", "rank0.err",
                                  "worker.out", "notes.txt", "./x"])
def test_explain_says_that_a_file_does_not_exist(name, tmp_path):
    wrong = rollcall("explain", name, cwd=tmp_path)
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert f"no such file: {name}" in wrong.stderr


def test_explain_takes_words_with_a_slash_for_a_line():
    line = "NET/IB : Got completion from peer 10.0.0.2<4791> with status=12 opcode=0"
    known = rollcall("explain", line)
    assert known.returncode in (0, 1) and "no such file" not in known.stderr
    assert subprocess.run([ROLLCALL, "explain", "epoch"], capture_output=True,
                          check=False).returncode == 1
