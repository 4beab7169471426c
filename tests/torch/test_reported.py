# SPDX-License-Identifier: Apache-2.0
"""Hangs as people reported them, and another form of each: the verdict, and the program without its mistake.

    tests/run reported

The last lines say how often the first piece of advice fits.
"""

import pytest
from reported_cases import CASES
from reported_checks import check_health, check_verdict, start_programs

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def start(request, tmp_path_factory):
    yield from start_programs(request, tmp_path_factory)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.program)
def test_the_verdict(case, start, tmp_path, record_property):
    check_verdict(case, start, tmp_path, record_property)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.program)
def test_fixed_it_is_healthy(case, start, tmp_path):
    check_health(case, start, tmp_path)
