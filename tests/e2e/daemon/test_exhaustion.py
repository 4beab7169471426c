# SPDX-License-Identifier: Apache-2.0
"""Daemon and agent where a limit of the system leaves them too little: they say which, and end in order."""
import os
import re
import resource
import subprocess

import pytest
from conftest import BUILD, ask, wait_for

OUT_OF_RESOURCES = 3
MIB = 1 << 20
STARTS = {"rollcalld": ["--listen=127.0.0.1:0", "--http=127.0.0.1:0"],
          "rollcall-agent": ["--daemon=127.0.0.1:9"]}


def start(tmp_path, program, *limits, flags=()):
    reports = [f"--report-dir={tmp_path}/reports"] if program == "rollcalld" else []
    return subprocess.run(["prlimit", *limits, BUILD / "bin" / program, *STARTS[program], *reports, *flags],
                          capture_output=True, text=True, timeout=120,
                          env={**os.environ, "ROLLCALL_DIR": str(tmp_path / "segments")})


@pytest.mark.parametrize("program", STARTS)
@pytest.mark.parametrize("limits, words", [
    ([f"--as={300 * MIB}"],
     r"the limit of its address space is 300 MiB, and PROGRAM needs \d+ MiB here.*\n.*ulimit -v"),
    (["--nofile=40:40"], r"it may open 40 files, and PROGRAM needs \d+ at least\n.*ulimit -n"),
])
def test_a_limit_that_is_too_low_is_named_at_the_start(tmp_path, program, limits, words):
    done = start(tmp_path, program, *limits)
    assert done.returncode == OUT_OF_RESOURCES, done.stderr
    assert re.match(f"{program}: cannot start: " + words.replace("PROGRAM", program), done.stderr), done.stderr
    assert done.stderr.count("\n") == 2


@pytest.mark.parametrize("program", STARTS)
def test_help_and_a_check_of_the_settings_need_no_more_than_before(tmp_path, program):
    assert start(tmp_path, program, "--nofile=40:40", flags=["--help"]).returncode == 0
    assert start(tmp_path, program, "--nofile=40:40", flags=["--check-config"]).returncode == 0


def test_a_running_daemon_without_memory_says_so_and_ends_in_order(start_daemon, start_job):
    daemon = start_daemon("--hang-after=3s")
    start_job(daemon)
    wait_for(lambda: ask(daemon, "incidents")["incidents"])
    known = ask(daemon, "incidents")["incidents"][0]["id"]
    size = int(re.search(r"VmSize:\s+(\d+)", open(f"/proc/{daemon.process.pid}/status").read())[1]) * 1024
    resource.prlimit(daemon.process.pid, resource.RLIMIT_AS, (size, size))
    load = [BUILD / "tests" / "fleet_load", f"--daemon={daemon.address}", "--jobs=40", "--ranks=64"]
    floods = [subprocess.Popen(load, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for _ in range(2)]
    try:
        assert daemon.process.wait(120) == OUT_OF_RESOURCES
    finally:
        for flood in floods:
            flood.kill()
            flood.wait()
    said = daemon.read_rest()
    assert "rollcalld: exiting: the system gives it no more" in said and "ulimit -v" in said, said
    assert "terminate called" not in said
    # What it knew is in its history.
    assert known in [incident["id"] for incident in ask(start_daemon(), "incidents")["incidents"]]
