# SPDX-License-Identifier: Apache-2.0
"""The callbacks of the Python package: verdicts have the step and the phase of real frameworks."""

import pytest
from framework_cases import FrameworkRun, Server, lacks_packages

pytestmark = pytest.mark.long

PROGRAMS = {"with_callbacks.lightning_validates": "validation",
            "with_callbacks.trainer_evaluates": "evaluation"}


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    if lacks_packages("with_callbacks"):
        pytest.skip("no frameworks; to have them:  deploy/setup_parts.sh frameworks")
    made = Server(tmp_path_factory.mktemp("server"), PROGRAMS)
    yield made
    made.stop()


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_verdict_has_the_step_and_the_phase_of_the_framework(program, server, tmp_path):
    run = FrameworkRun(server, program, tmp_path).go()
    assert len(run.incidents) == 1, run.output
    verdict = run.incidents[0]["verdicts"][0]
    assert [culprit["rank"] for culprit in verdict["culprits"]] == [1], verdict["summary"]
    assert verdict["phase"] == PROGRAMS[program] and verdict["step"] > 0, verdict


@pytest.mark.parametrize("program", PROGRAMS)
def test_fixed_it_ends_well(program, server, tmp_path):
    run = FrameworkRun(server, program, tmp_path, fixed=True, hang_after="15s").go()
    assert run.exit_code == 0, run.output
    assert run.said == [] and run.incidents == []
