# SPDX-License-Identifier: Apache-2.0
"""Real programs of many frameworks, on the simulated NCCL and on gloo: each hang gets its verdict, its fixed twin and
the ordinary programs get none.

    tests/run frameworks

The last lines say how often the first piece of advice fits.
"""

import re

import pytest
from expected_verdict import first_advice, misplaced, told_verdict
from framework_cases import (
    CASES,
    FAILS_ON_GLOO,
    HEALTHY,
    FrameworkRun,
    Server,
    lacks_packages,
    name_on,
    starts_its_ranks,
)

pytestmark = pytest.mark.long


def program_of(item):
    parameters = item.callspec.params
    return parameters["case"].program if "case" in parameters else parameters["program"]


@pytest.fixture(scope="module")
def start(request, tmp_path_factory):
    here = [item for item in request.session.items if item.module is request.module]
    programs = {program_of(item) for item in here}
    server = Server(tmp_path_factory.mktemp("server"),
                    [program for program in programs
                     if not lacks_packages(program) and not starts_its_ranks(program)])

    def run(program, work, *arguments, **options):
        if lacks_packages(program):
            pytest.skip("no frameworks; to have them:  deploy/setup_parts.sh frameworks")
        work.mkdir(exist_ok=True)
        return FrameworkRun(server, program, work, *arguments, **options).go()

    yield run
    server.stop()


def judge(case, run):
    """What is wrong with the verdict: "" if nothing."""
    if len(run.incidents) != 1:
        return f"{len(run.incidents)} incidents\n{run.output}"
    verdict = run.incidents[0]["verdicts"][0]
    told = verdict["cause"], tuple(culprit["rank"] for culprit in verdict["culprits"])
    if told != (case.cause, case.culprits):
        return f"{told}: {verdict['summary']}"
    return misplaced(case.lines, verdict) if case.at else ""


EACH = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


@EACH
def test_the_verdict(case, start, tmp_path, record_property):
    run = start(case.program, tmp_path / "1", case.ranks, backend=case.backend)
    if run.lacks_stacks():
        run = start(case.program, tmp_path / "2", case.ranks, backend=case.backend)
    verdict = told_verdict(run.incidents)
    first = first_advice(verdict)
    fits = first in case.advice
    record_property("first advice", (case.name, first, fits, verdict["summary"]))
    wrong = judge(case, run)
    if wrong and case.defect:
        pytest.xfail(f"{case.defect}: {wrong}")
    assert not wrong
    assert run.exit_code != 0
    misadvised = case.defect or case.misadvised
    if not fits and misadvised:
        pytest.xfail(f"{misadvised}: [{first}]")
    assert fits, verdict["advice"]


@EACH
def test_fixed_it_is_healthy(case, start, tmp_path):
    run = start(case.program, tmp_path, case.ranks, fixed=True, hang_after="15s", backend=case.backend)
    assert run.exit_code == 0, run.output
    assert len(re.findall(r"rank \d+ done", run.output)) == case.ranks, run.output
    assert run.said == [] and run.incidents == []


@pytest.mark.parametrize(("program", "backend"), [
    pytest.param(program, backend, id=name_on(program, backend))
    for backend in ("nccl_cpu", "gloo") for program in HEALTHY
    if backend != "gloo" or program not in FAILS_ON_GLOO])
def test_an_ordinary_program_gets_no_verdict(program, backend, start, tmp_path):
    run = start(program, tmp_path, hang_after="15s", backend=backend)
    assert run.exit_code == 0, run.output
    assert run.said == [] and run.incidents == []
