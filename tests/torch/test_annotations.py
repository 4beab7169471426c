# SPDX-License-Identifier: Apache-2.0
"""A training script that reports its step and phase: the verdict has those of both sides."""

import re

import pytest
from hang_cases import HERE, Hang, Run, last

ANNOTATED = Hang("annotated", "annotated/train.py", "argument_mismatch", last, "", "", "")
pytestmark = pytest.mark.long
GUIDE = HERE.parent.parent / "docs" / "programs.md"


def test_a_verdict_says_which_step_and_phase_each_side_is_in(tmp_path):
    run = Run(ANNOTATED, tmp_path).go()
    assert len(run.incidents) == 1, run.output
    verdict = run.incidents[0]["verdicts"][0]
    (culprit,) = verdict["culprits"]
    assert verdict["cause"] == ANNOTATED.cause and culprit["rank"] == last(run.ranks)
    assert verdict["waiting_ranks"] == [0, 1, 2]
    # An epoch has eight steps, 0 to 7. The last rank has no samples to validate: it is in step 8.
    assert (verdict["step"], verdict["phase"]) == (8, "validation")
    assert (culprit["step"], culprit["phase"]) == (8, "training")
    assert verdict["summary"].endswith(" in step 8 (validation)")
    (report,) = run.reports.glob("*/report.txt")
    steps = "rank 3: in step 8 (training), while the waiting ranks are in step 8 (validation)"
    assert steps in report.read_text()


def test_fixed_it_computes_the_same_where_nobody_listens(tmp_path):
    losses = []
    for rollcall in (False, True):
        work = tmp_path / str(rollcall)
        work.mkdir()
        run = Run(ANNOTATED, work, fixed=True, hang_after="10s", rollcall=rollcall).go()
        assert run.exit_code == 0, run.output
        losses += re.findall(r"final loss (\S+)", run.output)
        assert run.said == [] and run.incidents == []
    assert len(losses) == 2 and losses[0] == losses[1]


def test_the_guide_shows_what_the_script_does():
    shown = re.search(r"```python\n(.*?)```", GUIDE.read_text(), re.S)
    assert shown is not None, f"{GUIDE.name} shows no Python"
    lines = [line for line in shown[1].splitlines() if line]
    script = [line.strip() for line in (HERE / ANNOTATED.script).read_text().splitlines()]
    assert [line for line in lines if line.strip() not in script] == []
