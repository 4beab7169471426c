# SPDX-License-Identifier: Apache-2.0
"""Hangs of real PyTorch on gloo: the verdict, and the program without its mistake.

    tests/run torch tests/torch/test_gloo.py
"""

import pytest
from gloo_cases import CASES, KINDS
from reported_checks import check_health, check_verdict, start_programs

FIRST = [kind[0] for kind in KINDS]  # the gate runs these
EACH = [pytest.param(case, id=case.program, marks=[] if case in FIRST else [pytest.mark.long]) for case in CASES]


@pytest.fixture(scope="module")
def start(request, tmp_path_factory):
    yield from start_programs(request, tmp_path_factory)


@pytest.mark.parametrize("case", EACH)
def test_the_verdict(case, start, tmp_path, record_property):
    check_verdict(case, start, tmp_path, record_property)


@pytest.mark.parametrize("case", EACH)
def test_fixed_it_is_healthy(case, start, tmp_path):
    check_health(case, start, tmp_path)
