# SPDX-License-Identifier: Apache-2.0
"""Secrets in the command line, the environment and the notes of a job: what the agent sends, what the daemon
answers and what the report keeps."""
import json
import urllib.parse

import pytest
from conftest import BUILD, VICTIMS, Service, ask, reports_in, rollcall, wait_for

KEY = "0a1b2c3d" * 5
ARGUMENTS = ["--wandb-key", KEY, "--tensor-parallel-size", "8", "-phunter2", "hunter2", "--note", "two hunter2",
             "--cookie=hunter2"]


@pytest.fixture
def start_host(tmp_path):
    services = []

    def start(daemon, agent=None):
        segments = tmp_path / "segments"
        segments.mkdir(mode=0o700)
        services.append(Service([BUILD / "bin" / "rollcall-agent", f"--daemon={daemon.address}",
                                 f"--dir={segments}", "--scope=directory"], env=agent))
        services.append(Service(
            [VICTIMS / "ranks", "-n", "4", "--keep-going", "--", VICTIMS / "one_rank_stops_calling", *ARGUMENTS],
            env={"LD_PRELOAD": str(BUILD / "lib" / "librollcall.so"), "LD_LIBRARY_PATH": str(BUILD / "sim"),
                 "ROLLCALL_DIR": str(segments), "ROLLCALL_JOB": "a-job", "NCCL_MY_PLUGIN": "hunter2",
                 "HF_TOKEN": "hunter2"}))

    yield start
    for service in services[::-1]:
        if service.process.poll() is None:
            service.kill()


def commands_of(daemon):
    if not ask(daemon, "status").get("jobs"):
        return set()
    return {process["command"] for process in ask(daemon, "processes?job=a-job").get("processes", [])}


def whole_commands_of(daemon):
    """Without those of which the agent knows only a short name, because they have no segment yet."""
    return {command for command in commands_of(daemon) if " " in command}


def test_arguments_and_variables_stay_on_the_host(daemon, start_host, tmp_path):
    start_host(daemon)
    command, = wait_for(lambda: whole_commands_of(daemon))
    assert command == (f"{VICTIMS / 'one_rank_stops_calling'} --wandb-key [40 characters] --tensor-parallel-size 8 "
                       "-p[7 characters] [7 characters] --note [11 characters] --cookie=[7 characters]")
    report, = wait_for(lambda: reports_in(tmp_path / "daemon-reports"))
    incident = json.loads((report / "incident.json").read_text())["id"]
    done = rollcall("note", f"--daemon={daemon.address}", incident, "curl -u me:hunter2 works")
    assert done.returncode == 0, done.stderr
    seen = "".join(json.dumps(ask(daemon, path)) for path in (
        "processes?job=a-job", "status", "job?job=a-job", f"incident?id={urllib.parse.quote(incident)}"))
    assert "me:[redacted] works" in seen and "NCCL_MY_PLUGIN=[7 characters]" in seen
    for text in [seen, *(file.read_text(errors="replace") for file in reports_in(report))]:
        assert "hunter2" not in text and KEY not in text


@pytest.mark.long
def test_all_arguments_are_sent_without_what_looks_like_a_secret(daemon, start_host):
    start_host(daemon, agent={"ROLLCALL_SEND_ARGUMENTS": "all"})
    command, = wait_for(lambda: whole_commands_of(daemon))
    assert "--wandb-key [redacted] --tensor-parallel-size 8 " in command
    assert " --note 'two hunter2'" in command and "--cookie=[redacted]" in command
