# SPDX-License-Identifier: Apache-2.0
"""The short form leaves out tests marked `long`; ROLLCALL_FLEET_LONG=1 runs all, at full size."""
import concurrent.futures
import os
import pathlib

import fleet_case
import pytest

BUILD = pathlib.Path(os.environ["ROLLCALL_BUILD"])
outcomes = []


def pytest_collection_modifyitems(config, items):
    if fleet_case.LONG:
        return
    left_out = [item for item in items if item.get_closest_marker("long")]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if not item.get_closest_marker("long")]


def pytest_terminal_summary(terminalreporter):
    if outcomes:
        terminalreporter.write_line(fleet_case.table(outcomes))


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """run(short=Case, long=Case) -> Outcome of the form that is asked for"""

    def run_form(short, long):
        case = long if fleet_case.LONG else short
        outcome = fleet_case.run_case(case, BUILD, tmp_path_factory.mktemp("fleet"))
        outcomes.append(outcome)
        return outcome

    return run_form


@pytest.fixture(scope="module")
def run_beside(run):
    """run_beside({"short": Case, "long": Case}, ...) -> list of Outcomes. The short forms run at once:
    for cases that mostly wait."""

    def run_forms(*forms):
        with concurrent.futures.ThreadPoolExecutor(1 if fleet_case.LONG else len(forms)) as pool:
            return list(pool.map(lambda form: run(**form), forms))

    return run_forms
