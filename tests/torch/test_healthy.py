# SPDX-License-Identifier: Apache-2.0
"""Ordinary jobs: their results equal those without Rollcall, bit by bit, without an incident."""

import re
import sys

import pytest
from hang_cases import HERE, Hang, Run

sys.path.insert(0, str(HERE / "healthy"))
from jobs import JOBS

pytestmark = pytest.mark.long


def run(name, work, rollcall, forks, flags=(), limit=150):
    work.mkdir()
    job = Hang(name, "healthy/jobs.py", "", None, "", "", "",
               flags=(name, "--state", "{work}", *flags))
    # Only torchrun starts a job anew.
    is_forked = not rollcall and name != "elastic_restart"
    run = Run(job, work, hang_after="10s", rollcall=rollcall, forks=forks if is_forked else None)
    if name == "elastic_restart":
        at = run.command.index("--standalone")
        run.command.insert(at, "--max-restarts=1")
    return run.go(limit)


@pytest.mark.parametrize("name", JOBS)
def test_it_ends_as_without_rollcall(name, forks, tmp_path):
    losses = []
    for rollcall in (False, True):
        # Rank 0's long pause is for the watcher; without one it need not be long.
        flags = ("--idle", "60" if rollcall else "1") if "long" in name else ()
        ended = run(name, tmp_path / str(rollcall), rollcall, forks, flags)
        assert ended.exit_code == 0, ended.output
        losses += re.findall(r"final loss (\S+)", ended.output)
    assert len(losses) == 2 and losses[0] == losses[1]
    if name == "elastic_restart":
        # It did fall once: that is reported, and nothing more.
        assert len(ended.incidents) <= 1
        for incident in ended.incidents:
            assert incident["verdicts"][0]["culprits"][0]["rank"] == 1
    else:
        assert ended.said == [] and ended.incidents == [], ended.output
