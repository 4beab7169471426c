# SPDX-License-Identifier: Apache-2.0
"""PyTorch's own tests of its gloo backend, its stores and its checks of calls, which come with its sources only: with
Rollcall each has the result that it has without, and Rollcall says nothing of it.

    tests/run torch26
"""

import importlib.metadata
import os

import pytest
from hang_cases import HERE
from torchs_results import check_results

pytestmark = pytest.mark.long

VERSION = "2.6.0"  # of the sources
TESTS = HERE.parent.parent / "build" / "torch26-tests"
FILES = ["test_c10d_gloo", "test_c10d_common", "test_store", "test_pg_wrapper", "test_c10d_object_collectives",
         "test_c10d_spawn_gloo"]


@pytest.mark.timeout(1800)
@pytest.mark.skipif(importlib.metadata.version("torch").split("+")[0] != VERSION,
                    reason=f"they are those of PyTorch {VERSION}: tests/run torch26")
def test_each_has_the_result_that_it_has_without_rollcall(tmp_path):
    if not TESTS.exists():
        pytest.skip("the sources of PyTorch were not to be had; to try again:  deploy/setup_parts.sh torch26")
    path = os.pathsep.join([str(HERE), str(TESTS), os.environ.get("PYTHONPATH", "")])
    tests = ["-p", "forked_ranks", "--noconftest", *(str(TESTS / f"{name}.py") for name in FILES)]
    check_results(tests, tmp_path, 180, PYTHONPATH=path, GLOO_SOCKET_IFNAME="lo")
