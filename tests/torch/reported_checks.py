# SPDX-License-Identifier: Apache-2.0
"""What the tests of reported/ and of unseen/ have in common: the verdict, and the program without its mistake."""

import re
import sys

from expected_verdict import decide, faults, misplaced, scored_advice
from hang_cases import LIMIT_SECONDS, meanwhile
from program_runs import ProgramServer
from reported_cases import ReportedRun


def start_programs(request, tmp_path_factory):
    """The body of a fixture: yields what runs a case."""
    here = [item.callspec.params["case"] for item in request.session.items if item.module is request.module]
    server = ProgramServer(tmp_path_factory.mktemp("server"), {case.file for case in here})

    def run(case, work, limit, **options):
        work.mkdir(exist_ok=True)
        job = ReportedRun(server, sys.executable, case, work, **options)
        if case.beside is None:
            return job.go(limit)
        with meanwhile(case.beside, job):
            return job.go(limit)

    yield run
    server.stop()


def wrong_in(case, run):
    found = faults(case, run.incidents)
    if case.at and len(run.incidents) == 1:
        found += filter(None, [misplaced(case.lines, run.incidents[0]["verdicts"][0])])
    if case.seconds and run.exit_code <= 0:
        found.append(f"not ended within {case.seconds} s")
    if not case.seconds and run.exit_code != 0:
        found.append(f"ended with {run.exit_code}")
    return found


def check_verdict(case, start, tmp_path, record_property):
    run = start(case, tmp_path / "1", case.seconds or LIMIT_SECONDS)
    if run.lacks_stacks():
        run = start(case, tmp_path / "2", case.seconds or LIMIT_SECONDS)
    if case.advice:
        record_property("first advice", scored_advice(case, run.incidents))
    decide(case, wrong_in(case, run), run.output)


def check_health(case, start, tmp_path):
    run = start(case, tmp_path / "1", LIMIT_SECONDS, fixed=True, hang_after="15s")
    assert run.exit_code == 0, run.output
    assert len(re.findall(r"rank \d+ done", run.output)) == case.ranks, run.output
    assert run.said == [] and run.incidents == []
