# SPDX-License-Identifier: Apache-2.0
"""A job that stands still, and whose calls only PyTorch's Flight Recorder knows. Its ranks are programs with the
public interface of that recorder: a pipe by which it is asked, and the dump that it writes."""

import glob
import os
import pathlib
import re
import sys

import pytest
from conftest import ROLLCALL
from watched_job import WatchedJob

PROGRAM = pathlib.Path(__file__).parent / "recorded_rank.py"


@pytest.fixture
def job(tmp_path):
    """job(CALLS..., flags=[], env={}, limit=SECONDS): such a job under `rollcall run`, to its end or to the limit."""
    def start(*calls, flags=(), env=None, limit=120):
        watched = WatchedJob(tmp_path)
        watched.command = [str(ROLLCALL), "run", "--hang-after=5s", "--on-hang=abort",
                           f"--report-dir={watched.reports}", *flags, "--", sys.executable, str(PROGRAM),
                           *map(str, calls)]
        watched.env = dict(os.environ, **(env or {}))
        jobs.append(watched)
        return watched.go(limit)
    jobs = []
    yield start
    for watched in jobs:
        for prefix in re.findall(r"rollcall analyze (/tmp/rollcall-\S+rank_)", watched.output):
            for dump in glob.glob(f"{prefix}*"):
                os.remove(dump)


def verdict_of(watched):
    assert watched.exit_code == 75, watched.output
    (incident,) = watched.incidents
    return incident["verdicts"][0]


def test_the_rank_with_fewer_calls_is_named(job):
    watched = job(8, 7, 8)
    verdict = verdict_of(watched)
    assert (verdict["cause"], verdict["certainty"]) == ("missing_rank", "likely")
    (culprit,) = verdict["culprits"]
    assert culprit["rank"] == 1 and "recorded_rank.py" in culprit["at"]
    assert (verdict["call"]["operation"], verdict["waiting_ranks"]) == ("AllReduce", [0, 2])
    assert any("Flight Recorder" in line for line in verdict["evidence"])
    assert any("rollcall analyze" in line for line in watched.said)


def test_nothing_is_said_where_all_calls_are_done(job):
    watched = job(8, 8, 8, limit=25)
    assert watched.incidents == [], watched.output


def test_the_users_own_names_are_used(job, tmp_path):
    verdict_of(job(3, 3, 4, env={"TORCH_NCCL_DEBUG_INFO_PIPE_FILE": f"{tmp_path}/pipe_",
                              "TORCH_NCCL_DEBUG_INFO_TEMP_FILE": f"{tmp_path}/trace_rank_"}))
    assert (tmp_path / "trace_rank_0").exists() and (tmp_path / "trace_rank_2").exists()


def test_it_is_not_asked_where_that_is_switched_off(job):
    watched = job(8, 7, 8, flags=["--flight-recorder=off"], limit=25)
    assert watched.incidents == [], watched.output
