# SPDX-License-Identifier: Apache-2.0
"""Real programs of many frameworks: each hang gets its verdict, its fixed twin and the ordinary
programs get none.

    ROLLCALL_FRAMEWORKS_LONG=1 tests/torch/run.sh build/release -k frameworks     all; else a dozen

The last lines say how often the first piece of advice fits.
"""

import re

import pytest

from framework_cases import CASES, HEALTHY, FrameworkRun, is_long

chosen = [case for case in CASES if case.short or is_long()]


def judge(case, run):
    """What is wrong with the verdict: "" if nothing."""
    if len(run.incidents) != 1:
        return f"{len(run.incidents)} incidents\n{run.output}"
    verdict = run.incidents[0]["verdicts"][0]
    told = verdict["cause"], tuple(culprit["rank"] for culprit in verdict["culprits"])
    if told != (case.cause, case.culprits):
        return f"{told}: {verdict['summary']}"
    for culprit in verdict["culprits"] if case.at else []:
        if not any(re.search(rf"(^|/){line} in ", culprit["at"]) for line in case.lines):
            return f"at {culprit['at']!r}, not {case.lines}: {verdict['summary']}"
    return ""


@pytest.mark.parametrize("case", chosen, ids=lambda case: case.program)
def test_the_verdict(case, tmp_path, record_property):
    run = FrameworkRun(case.program, tmp_path, case.ranks).go()
    wrong = judge(case, run)
    if wrong and case.defect:
        pytest.xfail(f"{case.defect}: {wrong}")
    assert not wrong
    assert run.exit_code != 0
    verdict = run.incidents[0]["verdicts"][0]
    first = ([advice["id"] for advice in verdict["advice"]] or [""])[0]
    record_property("first advice", (case.program, first, first in case.advice,
                                     verdict["summary"]))
    assert first in case.advice or case.miss, verdict["advice"]


@pytest.mark.parametrize("case", chosen, ids=lambda case: case.program)
def test_fixed_it_is_healthy(case, tmp_path):
    run = FrameworkRun(case.program, tmp_path, case.ranks, fixed=True, hang_after="15s").go()
    assert run.exit_code == 0, run.output
    assert len(re.findall(r"rank \d+ done", run.output)) == case.ranks, run.output
    assert run.said == [] and run.incidents == []


@pytest.mark.parametrize("program", [name for name in HEALTHY if is_long()] or HEALTHY[:1])
def test_an_ordinary_program_gets_no_verdict(program, tmp_path):
    run = FrameworkRun(program, tmp_path, hang_after="15s").go()
    assert run.exit_code == 0, run.output
    assert run.said == [] and run.incidents == []
