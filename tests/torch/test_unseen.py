# SPDX-License-Identifier: Apache-2.0
"""Hangs of kinds for which no rule was made: the verdict, and the program without its mistake.

    tests/run reported tests/torch/test_unseen.py

The last lines say how often the first piece of advice fits.
"""

import pytest
from reported_checks import check_health, check_verdict, start_programs
from unseen_cases import CASES

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
