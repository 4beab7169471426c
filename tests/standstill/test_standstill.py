# SPDX-License-Identifier: Apache-2.0
"""Programs that hang outside of every recorded call: the verdict, the program without its mistake, and ordinary
programs that only look like it.

    tests/run standstill

The last lines say how often cause and culprits, the line and the first piece of advice are right. Five of the
programs are in the gate, too: tests/e2e/jobs/test_standstill.py.
"""

import concurrent.futures

import pytest
from cases import CASES, LEFT_ALONE
from checks import check_health, check_verdict

pytestmark = pytest.mark.long


@pytest.mark.parametrize("row", CASES, ids=lambda row: row.program)
def test_the_verdict(row, tmp_path, record_property):
    check_verdict(row, tmp_path, record_property)


@pytest.mark.parametrize("row", CASES, ids=lambda row: row.program)
def test_fixed_it_is_healthy(row, tmp_path):
    check_health(row, tmp_path)


@pytest.mark.parametrize("row", LEFT_ALONE, ids=lambda row: row.program)
def test_an_ordinary_program_is_left_alone(row, tmp_path):
    check_health(row, tmp_path)


@pytest.mark.timeout(900)
def test_ordinary_programs_are_left_alone_for_ten_minutes(tmp_path):
    """All of them at once, on a watch that asks after ten seconds."""
    with concurrent.futures.ThreadPoolExecutor(len(LEFT_ALONE)) as threads:
        checks = {row.program: threads.submit(check_health, row, tmp_path / row.program, seconds=600)
                  for row in LEFT_ALONE}
    assert {program: str(check.exception()) for program, check in checks.items() if check.exception()} == {}
