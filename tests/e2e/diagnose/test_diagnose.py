# SPDX-License-Identifier: Apache-2.0
"""`rollcall diagnose`: jobs that were started without Rollcall, and hang or do not. All kinds of standstills, with
PyTorch, JAX and Ray: tests/standstill/test_diagnose.py."""

import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

import pytest
from conftest import AS_NOBODY, BUILD, ROLLCALL, VICTIMS, let_everybody_pass_to, needs_another_user
from diagnosed_job import CANNOT_TELL, HANG, NOTHING, Look, look_until_it_hangs, running
from mpi_jobs import ENVIRONMENT, build_mpi_job
from processes import free_port, wait_for

sys.path.append(str(pathlib.Path(__file__).parents[2] / "standstill"))
from cases import CASES, LEFT_ALONE

ROWS = {row.program: row for row in CASES + LEFT_ALONE}
HANG_SECONDS = 120

# Ranks that meet by sockets; each prints its pid. A rank whose number is an argument waits for a lock elsewhere
# instead; with "rests" it only sleeps there.
RANKS = """
import os, socket, sys, threading, time
rank, elsewhere = int(os.environ["RANK"]), sys.argv[1:]
def validate():
    if "rests" in elsewhere:
        time.sleep(1000)
    lock = threading.Lock()
    while True:
        lock.acquire()
def meet():
    a, b = socket.socketpair()
    a.recv(1)
print(os.getpid(), flush=True)
validate() if str(rank) in elsewhere else meet()
"""


@pytest.fixture
def start(tmp_path):
    """start(ROW_OF_CASES): its job. start(RANKS, ...): ranks of the program above."""
    jobs = []

    def start_row(program, fixed=False):
        row = ROWS[program]
        (tmp_path / "work").mkdir()
        jobs.append(running(row.command(tmp_path / "work", tmp_path, fixed=fixed, seconds=60), tmp_path))
        return jobs[-1].__enter__()

    yield start_row
    for job in jobs:
        job.__exit__(None, None, None)


@pytest.fixture
def ranks():
    """ranks(SIZE, *ELSEWHERE): processes with a rank each, whose launcher is the test."""
    started = []

    def start_ranks(size, *elsewhere, through=()):
        port, job = free_port(), []
        for rank in range(size):
            job.append(subprocess.Popen(
                [*through, sys.executable, "-c", RANKS, *map(str, elsewhere)], stdout=subprocess.PIPE, text=True,
                env={**os.environ, "RANK": str(rank), "WORLD_SIZE": str(size), "MASTER_ADDR": "127.0.0.1",
                     "MASTER_PORT": str(port)}))
            started.append(job[-1])
            assert job[-1].stdout.readline().strip().isdigit()
        return job

    yield start_ranks
    for process in started:
        process.kill()
        process.wait()


@pytest.mark.parametrize("program", ["child_pipes.keeps_the_write_end", "sockets.body_is_too_short",
                                     "queues.producer_stops", "files.waits_under_the_lock"])
def test_names_the_culprits_of_a_job_that_nobody_prepared(start, program):
    row = ROWS[program]
    look = look_until_it_hangs(ROLLCALL, start(program), HANG_SECONDS)
    assert look.exit_code == HANG, look.text + look.errors
    assert look.culprits == row.culprits, look.verdict["summary"]
    assert look.verdict["cause"] == "standstill" and look.verdict["certainty"] in ("likely", "possible")
    assert any(re.search(rf"(^|/){line}\b", look.text) for line in row.lines), look.verdict["summary"]
    assert look.seconds < 60


RANKS_OF_NCCL = [VICTIMS / "ranks", "-n", "4", "--keep-going", "--", VICTIMS / "one_rank_stops_calling"]


def test_names_the_rank_that_has_left_the_calls_of_nccl(tmp_path):
    with running(RANKS_OF_NCCL, tmp_path, {"LD_LIBRARY_PATH": str(BUILD / "sim")}) as job:
        look = look_until_it_hangs(ROLLCALL, job, HANG_SECONDS)
    assert look.exit_code == HANG, look.text + look.errors
    assert look.culprits == (3,) and "Validate" in look.verdict["summary"], look.verdict["summary"]


def test_what_the_library_has_recorded_counts(tmp_path):
    rollcall = [ROLLCALL, "run", "--sim", "--hang-after=10m", f"--report-dir={tmp_path}", "--"]
    with running([*rollcall, *RANKS_OF_NCCL], tmp_path) as job:
        look = look_until_it_hangs(ROLLCALL, job, HANG_SECONDS)
    assert look.exit_code == HANG, look.text + look.errors
    assert look.verdict["cause"] == "missing_rank" and look.culprits == (3,), look.verdict["summary"]
    assert look.verdict["call"]["position"] == 10 and look.verdict["certainty"] == "likely"


@pytest.mark.parametrize("program", ["child_pipes.keeps_the_write_end", "queues.producer_stops"])
def test_says_nothing_of_the_program_without_its_mistake(start, program):
    job = start(program, fixed=True)
    time.sleep(3)
    for _ in range(2):
        look = Look(ROLLCALL, job.pid)
        assert look.exit_code == NOTHING, look.text


@pytest.mark.parametrize("program", ["ordinary.http_server", "ordinary.worker_pool", "ordinary.notebook"])
def test_says_nothing_of_idle_programs(start, program):
    job = start(program, fixed=True)
    time.sleep(2)
    look = Look(ROLLCALL, job.pid)
    assert look.exit_code == NOTHING, look.text


def test_what_is_only_possible_is_suspected(ranks):
    processes = ranks(3, 1, "rests")
    look = Look(ROLLCALL, processes[0].pid)
    assert look.exit_code == CANNOT_TELL, look.text
    incident, = look.incidents
    assert incident["state"] == "suspected" and not incident.get("confirmed_at"), incident["state"]
    assert look.verdict["certainty"] == "possible" and look.culprits == (1,)
    assert incident["look"]["outcome"] == "cannot_tell" and "possible" in incident["look"]["why"]
    done = subprocess.run([ROLLCALL, "diagnose", str(processes[0].pid)], capture_output=True, text=True, timeout=120,
                          check=False)
    assert done.returncode == CANNOT_TELL, done.stdout + done.stderr
    assert "Cannot tell whether it hangs" in done.stdout and "in validate" in done.stdout


def test_a_recorded_server_that_may_be_idle_is_suspected_only(tmp_path, tmp_path_factory):
    serves = [*build_mpi_job("openmpi", "mpi_job", tmp_path_factory), "serves requests", "100"]
    rollcall = [ROLLCALL, "run", "--hang-after=10m", f"--report-dir={tmp_path}", "--"]
    with running([*rollcall, *serves], tmp_path, ENVIRONMENT) as job:
        look = look_until_it_hangs(ROLLCALL, job, 60)
    assert look.exit_code == CANNOT_TELL, look.text + look.errors
    incident = next(incident for incident in look.incidents if incident["verdicts"])
    assert incident["state"] == "suspected" and not incident.get("confirmed_at")
    assert look.verdict["certainty"] == "possible" and look.verdict["idle"] and look.culprits == (0,)
    assert incident["look"]["outcome"] == "cannot_tell" and "idle" in incident["look"]["why"]


def test_text_says_what_to_do(ranks):
    processes = ranks(3, 1)
    done = subprocess.run([ROLLCALL, "diagnose", str(processes[0].pid)], capture_output=True, text=True, timeout=120,
                          check=False)
    assert done.returncode == HANG, done.stdout + done.stderr
    assert "rank 1" in done.stdout and "in validate" in done.stdout
    assert "rollcall run COMMAND" in done.stdout
    assert f"rollcall diagnose {processes[0].pid} --report-dir=" in done.stdout
    assert done.stderr == ""  # no line of progress without a terminal


def test_writes_a_report_and_nothing_else(ranks, tmp_path):
    processes = ranks(3, 1)
    done = subprocess.run([ROLLCALL, "diagnose", "--report-dir=reports", str(processes[0].pid)], cwd=tmp_path,
                          capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == HANG, done.stdout + done.stderr
    folder, = (tmp_path / "reports").iterdir()
    assert {"incident.json", "report.txt", "report.html", "stacks.txt"} <= {file.name for file in folder.iterdir()}
    incident = json.loads((folder / "incident.json").read_text())
    assert incident["verdicts"][0]["culprits"][0]["pid"] == processes[1].pid
    assert [stack["rank"] for stack in incident["stacks"]] == [1, 0, 2]
    assert [path.name for path in tmp_path.iterdir()] == ["reports"]


def test_the_processes_go_on_as_before(ranks):
    processes = ranks(3, 1)
    Look(ROLLCALL, processes[0].pid)
    for process in processes:
        status = pathlib.Path(f"/proc/{process.pid}/status").read_text()
        assert "TracerPid:\t0\n" in status and re.search(r"^State:\t[SR]", status, re.M)
        assert "rollcall" not in pathlib.Path(f"/proc/{process.pid}/maps").read_text()


def test_names_a_stopped_rank(ranks):
    processes = ranks(3)
    processes[2].send_signal(signal.SIGSTOP)
    look = Look(ROLLCALL, processes[0].pid)
    assert look.exit_code == HANG, look.text
    assert look.culprits == (2,) and "stopped" in look.verdict["summary"]


def test_names_a_rank_that_has_died(ranks):
    processes = ranks(3)
    processes[1].kill()
    wait_for(lambda: pathlib.Path(f"/proc/{processes[1].pid}/stat").read_text().split(")")[1].split()[0] == "Z")
    look = Look(ROLLCALL, processes[0].pid)
    assert look.exit_code == HANG, look.text
    assert look.culprits == (1,) and "signal 9" in look.verdict["summary"]


def test_says_nothing_of_a_job_of_one_rank(ranks):
    assert Look(ROLLCALL, ranks(1)[0].pid).exit_code == NOTHING


def test_two_jobs_have_two_findings(ranks):
    look = Look(ROLLCALL, ranks(3, 1)[0].pid, ranks(4, 2)[3].pid)
    assert len([incident for incident in look.incidents if incident["verdicts"]]) == 2, look.text


def test_json_has_the_shape_of_an_incident(ranks):
    look = Look(ROLLCALL, ranks(2)[0].pid)
    incident, = look.incidents
    assert {"id", "tenant", "job", "attempt", "state", "verdicts", "stacks", "ranks"} <= set(incident)


@needs_another_user
def test_says_what_it_cannot_see_of_another_user(ranks, tmp_path):
    let_everybody_pass_to(tmp_path / "x")
    pid = ranks(2)[0].pid
    done = subprocess.run([*AS_NOBODY, ROLLCALL, "diagnose", str(pid)], capture_output=True, text=True, timeout=120,
                          check=False)
    assert done.returncode == CANNOT_TELL, done.stdout + done.stderr
    assert f"sudo rollcall diagnose {pid}" in " ".join(done.stdout.split())


@needs_another_user
def test_root_diagnoses_the_job_of_a_user(ranks):
    processes = ranks(3, 1, through=AS_NOBODY)
    look = Look(ROLLCALL, "--user=65534")
    assert look.exit_code == HANG, look.text
    assert look.verdict["culprits"][0]["pid"] == processes[1].pid


@pytest.mark.parametrize("arguments, words", [
    (["999999999"], "process 999999999 does not exist"),
    (["--user=no-such-user"], "no such user"),
    (["--samples-apart=1s"], "at least 2s"),
    (["a", "b"], "name one job, or process numbers"),
])
def test_bad_usage(arguments, words):
    done = subprocess.run([ROLLCALL, "diagnose", *arguments], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 2 and words in done.stderr, done.stderr
