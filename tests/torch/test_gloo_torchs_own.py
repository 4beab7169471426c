# SPDX-License-Identifier: Apache-2.0
"""PyTorch's own tests of torch.distributed on gloo, with three ranks: with Rollcall each has the result that it has
without, and Rollcall says nothing of it."""

import pathlib

import pytest
from torchs_results import check_results

pytestmark = pytest.mark.long

TESTS = pathlib.Path(__file__).with_name("torchs_own.py")


@pytest.mark.timeout(1800)
def test_each_has_the_result_that_it_has_without_rollcall(tmp_path):
    check_results([str(TESTS)], tmp_path, 50, BACKEND="gloo", WORLD_SIZE="3")
