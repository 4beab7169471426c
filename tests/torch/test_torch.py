# SPDX-License-Identifier: Apache-2.0
"""PyTorch's own tests of torch.distributed, on the backend of tests/torch/backend.

They come with torch, and start two ranks each. torch_tests.txt lists those that run and pass, and
says what becomes of the others. Those that fail do so for these reasons:

  test_all_gather_coalesced*   ProcessGroupNCCL has no allgather_coalesced either
  test_send_recv_any_source*   NCCL cannot receive from any source
  test_ddp_logging_data_cpu    torch calls backends that it does not know "custom"; the test
                               expects their name
"""

import os
import pathlib

import pytest

os.environ["BACKEND"] = "nccl_cpu"

from torchs_own import Inherited, TestTorchsOwn  # noqa: F401 (pytest collects it here)

pytestmark = pytest.mark.long
LISTED = {line for line in
          pathlib.Path(__file__).with_name("torch_tests.txt").read_text().splitlines()
          if not line.startswith("#")}

for name in dir(Inherited):
    if name.startswith("test_") and name not in LISTED:
        getattr(Inherited, name).__test__ = False  # not collected


def test_all_that_are_listed_are_there():
    assert len(LISTED) > 50
    assert [name for name in LISTED if not hasattr(Inherited, name)] == []
