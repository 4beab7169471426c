# SPDX-License-Identifier: Apache-2.0
"""`rollcall run --junit=FILE`: a CI server sees the run as one test case, and a hang as its failure."""
import os
import signal
import subprocess
import xml.etree.ElementTree as tree

import pytest
from conftest import ROLLCALL, VICTIMS, wait_for


def case_in(file):
    suites = tree.parse(file).getroot()
    (suite,) = suites
    (case,) = suite.iter("testcase")
    return suite, case


def test_a_hang_is_the_failure_of_the_test_case(run, tmp_path):
    file = tmp_path / "rollcall.xml"
    result = run("one_rank_stops_calling", flags=[f"--junit={file}"])
    assert result.exit_code == 75
    suite, case = case_in(file)
    assert (suite.get("failures"), suite.get("errors")) == ("1", "0")
    failure = case.find("failure")
    assert failure.get("type") == result.verdict["cause"] == "missing_rank"
    # The report may be a moment newer: how long the ranks have waited comes last in both.
    assert failure.get("message").rpartition(" waited ")[0] == result.verdict["summary"].rpartition(" waited ")[0] != ""
    assert str(result.reports[0]) in failure.text
    assert case.get("name") == result.incident["job"]
    assert 0 < float(case.get("time")) <= result.seconds


@pytest.mark.parametrize("command, code, element", [
    (["true"], 0, None), (["false"], 1, "error"), (["no-such-command"], 127, "error")])
def test_a_run_without_a_hang_has_the_outcome_of_its_exit_code(tmp_path, command, code, element):
    file = tmp_path / "rollcall.xml"
    done = subprocess.run([ROLLCALL, "run", f"--junit={file}", "--", *command],
                          capture_output=True, check=False, timeout=120)
    assert done.returncode == code
    _, case = case_in(file)
    assert [child.tag for child in case] == ([element] if element else [])
    if element:
        assert f"exit code {code}" in case.find(element).get("message")


def test_a_run_that_is_killed_leaves_an_error(tmp_path):
    file = tmp_path / "rollcall.xml"
    job = subprocess.Popen([ROLLCALL, "run", f"--junit={file}", "--", "sleep", "60"],
                           stderr=subprocess.DEVNULL, start_new_session=True)
    wait_for(file.exists)
    os.killpg(job.pid, signal.SIGKILL)
    job.wait()
    _, case = case_in(file)
    assert "did not finish" in case.find("error").get("message")


def test_a_file_that_cannot_be_written_is_refused_before_the_job_starts(tmp_path):
    ran = tmp_path / "ran"
    for file, why in [(tmp_path / "no" / "rollcall.xml", "No such file or directory"),
                      (tmp_path, "Is a directory"), ("/dev/full", "No space left on device")]:
        done = subprocess.run([ROLLCALL, "run", f"--junit={file}", "--", "touch", ran],
                              capture_output=True, text=True, check=False, timeout=120)
        assert done.returncode == 2
        assert f"--junit: cannot write {file}: {why}" in done.stderr
        assert "the job was not started" in done.stderr and not ran.exists()


def test_a_file_that_cannot_be_written_any_more_changes_no_exit_code(tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    done = subprocess.run([ROLLCALL, "run", f"--junit={folder}/rollcall.xml", "--", "rm", "-r", folder],
                          capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0
    assert "--junit: cannot write" in done.stderr


@pytest.mark.parametrize("command, code, words", [
    (["no-such-command"], 127, "command not found, exit code 127"),
    (["sh", "-c", "kill -SEGV $$"], 139, "killed by signal 11 (SIGSEGV), exit code 139"),
    (["sh", "-c", "kill -TERM $$"], 143, "killed by signal 15 (SIGTERM), exit code 143"),
])
def test_the_error_says_in_words_how_the_job_ended(tmp_path, command, code, words):
    file = tmp_path / "rollcall.xml"
    done = subprocess.run([ROLLCALL, "run", f"--junit={file}", "--", *command],
                          capture_output=True, check=False, timeout=120)
    assert done.returncode == code
    _, case = case_in(file)
    assert case.find("error").get("message") == f"{words}; Rollcall saw no hang"


@pytest.mark.long
def test_a_second_run_replaces_the_file_of_the_first_one(run, tmp_path):
    file = tmp_path / "rollcall.xml"
    run("one_rank_stops_calling", flags=[f"--junit={file}"])
    subprocess.run([ROLLCALL, "run", f"--junit={file}", "--", VICTIMS / "ranks", "-n", "1", "--",
                    "true"], capture_output=True, check=False, timeout=120)
    _, case = case_in(file)
    assert case.find("failure") is None
    assert [path.name for path in tmp_path.iterdir() if path.suffix != ".xml"] == ["reports"]
