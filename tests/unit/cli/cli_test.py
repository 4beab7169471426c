# SPDX-License-Identifier: Apache-2.0
"""Tests of the built `rollcall`: help, flags, the environment of jobs, bad input, reports on disk.
(tests/e2e/commands/test_run.py has whole jobs.)"""
import json
import os
import pathlib
import re
import signal
import socket
import subprocess

import pytest
from command_line import LIBRARY, ROLLCALL, rollcall


@pytest.mark.parametrize("arguments", [("--help",), ("--version",), ("-V",), ("version",), ("run", "--help"),
                                       ("analyze", "--help"), ("status", "--help"), ("stacks", "--help")])
def test_help_exits_with_0_and_prints_on_stdout(arguments):
    result = rollcall(*arguments)
    assert result.returncode == 0
    assert result.stdout and not result.stderr


def subcommands():
    return re.findall(r"^  ([\w-]+)  +\w", rollcall("--help").stdout.split("Commands:")[1], re.MULTILINE)


def test_every_help_ends_with_examples_of_flags_that_it_has():
    for command in subcommands():
        flags, _, examples = rollcall(command, "--help").stdout.partition("\nExamples:\n")
        lines = [line for line in examples.splitlines() if re.match(r"  \S", line)]
        assert lines and all(f"rollcall {command}" in line for line in lines), command
        for own in re.findall(rf"rollcall {command}((?: --\S+)*)", examples):
            for flag in re.findall(r"--[\w-]+", own):
                assert re.search(rf"^  {flag}\b", flags, re.MULTILINE), (command, flag)


def test_the_flags_that_reach_a_daemon_come_last_in_a_group_of_their_own():
    for command in subcommands():
        own, _, last = rollcall(command, "--help").stdout.partition("\nTo reach a daemon:\n")
        assert not re.search(r"^  --(daemon|token-file)\b", own, re.MULTILINE), command
        assert ("--tls-ca" in last) == ("--tls-ca" in own + last) or command == "webhook", command


def test_the_usage_of_run_shows_the_command():
    assert "Usage: rollcall run [OPTIONS] COMMAND...\n" in rollcall("run", "--help").stdout
    assert "COMMAND is required" in rollcall("run").stderr


@pytest.mark.parametrize("command, script", [(["sh", "-c", "echo $ROLLCALL_JOB"], "sh"),
                                             (["sh", "train.sh"], "train")])
def test_a_job_has_the_name_of_its_script(command, script, tmp_path):
    (tmp_path / "train.sh").write_text("echo $ROLLCALL_JOB\n")
    result = rollcall("run", *command, cwd=tmp_path)
    assert re.fullmatch(rf"{script}-\d+", result.stdout.strip())


@pytest.mark.parametrize("variable, value", [("ROLLCALL_HANG_AFTER", "soon"),
                                             ("ROLLCALL_HANG_AFTER", "1ms"),
                                             ("ROLLCALL_ON_HANG", "exec:"),
                                             ("ROLLCALL_FORMAT", "pdf")])
def test_rollcall_checks_flags_from_the_environment(variable, value):
    command = ("analyze", "/") if variable == "ROLLCALL_FORMAT" else ("run", "--", "true")
    result = rollcall(*command, env={variable: value})
    assert result.returncode == 2
    assert value in result.stderr


def test_arguments_reach_the_job_unchanged():
    arguments = ["--help", "--", "", "a b", "$HOME", "*"]
    result = rollcall("run", "--", "printf", "[%s]", *arguments)
    assert result.stdout == "".join(f"[{argument}]" for argument in arguments)


def test_the_job_gets_stdin_and_stderr_of_the_run():
    result = rollcall("run", "--", "sh", "-c", "cat >&2; exec 2>&-", input="a line\n")
    assert result.stderr.startswith("a line\n")
    assert all(line.startswith("rollcall: ") for line in result.stderr.splitlines()[1:])


def test_the_users_preloaded_library_stays_first():
    theirs = "/no/such/library.so"
    result = rollcall("run", "--", "sh", "-c", "echo $LD_PRELOAD", env={"LD_PRELOAD": theirs})
    assert result.stdout.strip() == f"{theirs}:{os.path.realpath(LIBRARY)}"


def test_the_users_folder_stays_and_is_empty_afterwards(tmp_path):
    result = rollcall("run", "--", "sh", "-c", "echo $ROLLCALL_DIR",
                      env={"ROLLCALL_DIR": str(tmp_path / "given")})
    assert pathlib.Path(result.stdout.strip()).parent == tmp_path / "given"
    assert list((tmp_path / "given").iterdir()) == []


def test_a_run_keeps_folders_that_no_run_has_made(tmp_path):
    names = {"run-999999999-5", "run-of-somebody-else", f"run-{os.getpid()}-5"}
    for name in names:
        (tmp_path / name).mkdir()
    rollcall("run", "--", "true", env={"ROLLCALL_DIR": str(tmp_path)})
    assert {path.name for path in tmp_path.iterdir()} == names


def test_a_second_signal_ends_a_job_that_ignores_the_first(tmp_path):
    job = subprocess.Popen(
        [ROLLCALL, "run", "--", "sh", "-c",
         "trap '' INT TERM; sh -c 'echo $$; exec sleep 60' & wait; wait"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "ROLLCALL_DIR": str(tmp_path)})
    sleeper = job.stdout.readline().strip()
    job.send_signal(signal.SIGINT)
    job.send_signal(signal.SIGTERM)
    job.communicate(timeout=120)
    assert job.returncode == 128 + signal.SIGKILL
    assert not pathlib.Path(f"/proc/{sleeper}").exists()
    assert list(tmp_path.iterdir()) == []


def test_a_command_that_does_not_exist_leaves_no_folder(tmp_path):
    result = rollcall("run", "--", "/no/such/command", env={"ROLLCALL_DIR": str(tmp_path)})
    assert result.returncode == 127
    assert "/no/such/command" in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_without_a_daemon_status_names_the_address_and_the_next_command():
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{unused.getsockname()[1]}"
        result = rollcall("status", f"--daemon={address}")
    assert result.returncode == 1
    assert address in result.stderr
    assert "pgrep -a rollcalld" in result.stderr


def write_report(folder, place, job="secret-job"):
    folder.mkdir()
    root = {"cause": "missing_rank", "certainty": "likely", "summary": f"rank 3 of {job} is late",
            "culprits": [{"rank": 3, "host": "node-17", "at": f"/x/train.py:212 in {place}"}]}
    (folder / "incident.json").write_text(json.dumps({"id": f"{job}-1", "job": job, "state": "confirmed",
                                                      "verdicts": [root], "look": {"why": "of a later release"}}))
    return folder


def test_a_report_on_disk_needs_no_daemon(tmp_path):
    folder = write_report(tmp_path / "a", "validate")
    shown = rollcall("report", folder, "--daemon=127.0.0.1:1")
    assert shown.returncode == 0, shown.stderr
    assert "secret-job" in shown.stdout and "node-17" in shown.stdout
    hidden = rollcall("report", folder, "--anonymize", f"--report-dir={tmp_path / 'for-others'}")
    assert hidden.returncode == 0, hidden.stderr
    for path in pathlib.Path(hidden.stdout.strip()).iterdir():
        assert "secret-job" not in path.read_text() and "node-17" not in path.read_text()


def test_two_reports_on_disk_are_compared(tmp_path):
    first, other = write_report(tmp_path / "a", "validate"), write_report(tmp_path / "b", "load")
    assert rollcall("compare", first, first / "incident.json").returncode == 0
    differ = rollcall("compare", first, other, "--format=json")
    assert differ.returncode == 3, differ.stderr
    facts = {fact["name"]: fact for fact in json.loads(differ.stdout)["facts"]}
    assert facts["at"]["differs"] and not facts["cause"]["differs"]


@pytest.mark.parametrize("damage, words", [
    (lambda file: file.unlink(), "no incident.json"),
    (lambda file: file.write_text(file.read_text()[:90]), "is damaged"),
    (lambda file: file.write_bytes(bytes(range(256))), "is damaged"),
    (lambda file: file.write_text("{}"), "holds no incident")])
@pytest.mark.parametrize("command", ["report", "compare"])
def test_a_damaged_report_is_named(tmp_path, command, damage, words):
    folder = write_report(tmp_path / "a", "validate")
    damage(folder / "incident.json")
    result = rollcall(command, *([folder] if command == "report" else [folder, folder]))
    assert result.returncode == 2 and words in result.stderr and str(folder) in result.stderr


HOSTILE = "\x1b[31mred\nrollcall: all is well\u202e\x9b2J\x07"


@pytest.mark.parametrize("arguments", [
    (HOSTILE,), ("stacks", "1", HOSTILE), ("stacks", f"--{HOSTILE}"), ("stacks", "--daemon=127.0.0.1:1", HOSTILE),
    ("stacks", "--daemon=127.0.0.1:1", b"\xff\xfe"), ("status", "--daemon=127.0.0.1:1", HOSTILE),
    ("status", f"--daemon={HOSTILE}"), ("report", "--daemon=127.0.0.1:1", HOSTILE),
    ("report", f"--format={HOSTILE}", "x"), ("analyze", f"/nowhere/{HOSTILE}"), ("man", HOSTILE),
    ("explain", f"/nowhere/{HOSTILE}"), ("run", f"--hang-after={HOSTILE}", "--", "true")])
def test_an_error_repeats_no_control_character_of_an_argument(arguments):
    result = subprocess.run([ROLLCALL, *arguments], capture_output=True, timeout=120, check=False)
    assert result.returncode != 0 and result.stderr
    text = result.stderr.decode()  # valid UTF-8
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", text), ascii(text)


@pytest.mark.parametrize("command", [("run", "--redact=(x", "--", "true"),
                                     ("analyze", "--redact=(x", "/nowhere")])
def test_a_wrong_pattern_of_redact_is_refused(command):
    result = rollcall(*command)
    assert result.returncode == 2
    assert "give an expression of RE2" in result.stderr
