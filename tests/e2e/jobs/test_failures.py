# SPDX-License-Identifier: Apache-2.0
"""Jobs in Python that fail in ways that NCCL calls alone do not show."""
import json
import os
import pathlib
import subprocess
import sys

import pytest
from conftest import ROLLCALL, VICTIMS, long

SCRIPT = pathlib.Path(__file__).with_name("python_rank.py")


@pytest.fixture
def fail(tmp_path):
    """fail(how) -> (exit code, output, incidents): rank 3 of 4 ends in this way."""

    def run(how, grace=0, env=None, flags=(), hang_after="60s"):
        reports = tmp_path / "reports"
        job = subprocess.run(
            [ROLLCALL, "run", "--sim", f"--hang-after={hang_after}", f"--report-dir={reports}",
             *flags, "--", VICTIMS / "ranks", "-n", "4", "--grace", str(grace), "--",
             sys.executable, SCRIPT, how],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120,
            env={**os.environ, **(env or {})})
        print(job.stderr)
        files = sorted(reports.glob("*/incident.json"))
        return job.returncode, job.stderr, [json.loads(file.read_text()) for file in files]

    return run


def find_verdict(incidents):
    assert len(incidents) == 1, incidents
    verdict = incidents[0]["verdicts"][0]
    assert [culprit["rank"] for culprit in verdict["culprits"]] == [3]
    assert verdict["waiting_ranks"] == [0, 1, 2]
    assert verdict["call"]["position"] == 5
    return verdict


@pytest.mark.parametrize("grace", [0, long(3)])
def test_the_verdict_has_the_exception_and_its_line(fail, grace):
    _, said, incidents = fail("raise", grace)
    verdict = find_verdict(incidents)
    assert verdict["cause"] == "rank_exited"
    error = verdict["culprits"][0]["error"]
    lines = SCRIPT.read_text().splitlines()
    raised = next(n for n, line in enumerate(lines, 1) if "raise LoaderError" in line)
    assert error == f"LoaderError: batch 17 is damaged at python_rank.py:{raised}"
    assert error in verdict["summary"] and error in said
    assert verdict["advice"][0]["id"] == "raised-an-exception"
    assert verdict["step"] == 804 and " in step 804" in verdict["summary"]
    assert verdict["culprits"][0]["step"] == 804
    assert verdict["culprits"][0]["phase"] == "evaluation"
    assert "Traceback (most recent call last)" in said  # Python's own message stays


def test_the_verdict_has_the_exception_that_ended_a_thread(fail):
    _, said, incidents = fail("thread", flags=["--on-hang=abort"], hang_after="4s")
    verdict = find_verdict(incidents)
    assert verdict["cause"] == "missing_rank"
    culprit, = verdict["culprits"]
    raised = next(n for n, line in enumerate(SCRIPT.read_text().splitlines(), 1) if "raise LoaderError" in line)
    assert culprit["thread_error"] == f"LoaderError: batch 17 is damaged at python_rank.py:{raised}"
    assert culprit["failed_thread"] == "prefetch" and culprit["error"] == ""
    assert f'thread "prefetch" of rank 3 ended with {culprit["thread_error"]}' in verdict["summary"]
    assert verdict["advice"][0]["id"] == "thread-failed"
    assert "Exception in thread prefetch" in said  # Python's own message stays


def test_the_verdict_has_the_exception_of_a_thread_whose_main_thread_only_waits(fail):
    _, said, incidents = fail("worker", flags=["--on-hang=abort"], hang_after="4s")
    verdict = find_verdict(incidents)
    assert verdict["cause"] == "missing_rank"
    culprit, = verdict["culprits"]
    assert culprit["thread_error"].startswith("LoaderError: batch 17 is damaged at python_rank.py:")
    assert culprit["failed_thread"] == "worker"
    assert verdict["advice"][0]["id"] == "thread-failed"


@pytest.mark.long
def test_run_leaves_the_end_of_a_failed_job_to_its_launcher(fail):
    exit_code, said, incidents = fail("raise", flags=["--on-hang=abort"])
    assert exit_code == 1 and "ending the job" not in said
    find_verdict(incidents)


def test_run_ends_a_failed_job_if_its_launcher_does_not(fail):
    exit_code, said, incidents = fail("raise", grace=60, flags=["--on-hang=abort"])
    assert exit_code == 75 and "ending the job" in said
    assert find_verdict(incidents)["culprits"][0]["error"].startswith("LoaderError")


def test_the_verdict_shows_both_shapes(fail):
    _, said, incidents = fail("shape", grace=60, flags=["--on-hang=abort"])
    verdict = incidents[0]["verdicts"][0]
    assert verdict["cause"] == "argument_mismatch"
    assert [culprit["rank"] for culprit in verdict["culprits"]] == [3]
    assert verdict["call"]["shape"] == "[32, 32]"
    assert verdict["culprits"][0]["call"]["shape"] == "[16, 32]"
    assert "float32 x 512 as [16, 32]" in said and "float32 x 1024 as [32, 32]" in said


@pytest.mark.long
def test_the_programs_own_excepthook_still_runs(fail):
    _, said, incidents = fail("hook")
    assert "the program's own hook: LoaderError" in said and "Traceback" not in said
    assert find_verdict(incidents)["culprits"][0]["error"].startswith("LoaderError: batch 17")


@pytest.mark.long
def test_without_the_hook_the_verdict_has_only_the_exit_code(fail):
    _, _, incidents = fail("raise", env={"ROLLCALL_PYTHON_ERRORS": "0"})
    verdict = find_verdict(incidents)
    assert verdict["cause"] == "rank_exited"
    assert "error" not in verdict["culprits"][0] or verdict["culprits"][0]["error"] == ""
    assert "exited with code 1" in verdict["summary"]


@pytest.mark.long
def test_the_verdict_has_the_code_of_an_early_exit(fail):
    exit_code, _, incidents = fail("exit")
    assert exit_code == 3
    assert "exited with code 3" in find_verdict(incidents)["summary"]


def test_the_verdict_distinguishes_a_kill_from_the_launchers_signal(fail):
    exit_code, _, incidents = fail("kill")
    assert exit_code == 128 + 9
    verdict = find_verdict(incidents)
    assert verdict["cause"] == "rank_died"
    assert "killed by signal 9" in verdict["summary"]
    assert any("rank 3 failed first" in line for line in verdict["evidence"])


@pytest.mark.parametrize("watched_by", ["itself", long("a_daemon")])
def test_a_launcher_that_exits_before_its_ranks_hides_no_verdict(start_daemon, tmp_path, watched_by):
    reports = tmp_path / "reports"
    where = [f"--daemon={start_daemon().address}"] if watched_by == "a_daemon" else []
    job = subprocess.run(
        [ROLLCALL, "run", "--sim", "--hang-after=60s", *where, f"--report-dir={reports}", "--",
         sys.executable, SCRIPT.with_name("hasty_launcher.py"), tmp_path,
         VICTIMS / "one_rank_dies"],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120)
    assert job.returncode == 1
    assert "rank 1" in job.stderr and "killed by signal 9" in job.stderr, job.stderr
    incident, = [json.loads(file.read_text()) for file in reports.glob("*/incident.json")]
    verdict = incident["verdicts"][0]
    assert (verdict["cause"], verdict["waiting_ranks"]) == ("rank_died", [0, 2, 3])


def test_a_person_who_ends_the_job_causes_no_failure(fail):
    _, _, incidents = fail("interrupt")
    assert incidents == []


def test_stacks_explain_a_job_that_hangs_before_nccl(tmp_path):
    reports = tmp_path / "reports"
    job = subprocess.run(
        [ROLLCALL, "run", "--sim", "--hang-after=3s", "--on-hang=abort",
         f"--report-dir={reports}", "--", VICTIMS / "ranks", "-n", "4", "--",
         sys.executable, SCRIPT.with_name("python_start.py")],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120)
    assert job.returncode == 75, job.stderr
    (file,) = reports.glob("*/incident.json")
    verdict = json.loads(file.read_text())["verdicts"][0]
    assert (verdict["cause"], verdict["certainty"]) == ("init_incomplete", "likely")
    (culprit,) = verdict["culprits"]
    assert culprit["rank"] == 0 and culprit["at"].endswith("in make_the_data_set")
    assert verdict["waiting_ranks"] == [1, 2, 3]
    (place,) = verdict["waiting_at"]
    assert place["at"].endswith("in _store_based_barrier")
