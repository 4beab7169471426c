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
import tempfile

os.environ["BACKEND"] = "nccl_cpu"
os.environ.setdefault("WORLD_SIZE", "2")
os.environ.setdefault("TEMP_DIR", tempfile.mkdtemp())
os.environ.setdefault("DISTRIBUTED_TESTS_DEFAULT_TIMEOUT", "60")

import pytest
import torch.multiprocessing
from torch.testing._internal.distributed import distributed_test

pytestmark = pytest.mark.long
FORKS = torch.multiprocessing.get_context("forkserver")  # has few threads, unlike this process
FORKS.set_forkserver_preload([distributed_test.__name__])

LISTED = {line for line in
          pathlib.Path(__file__).with_name("torch_tests.txt").read_text().splitlines()
          if not line.startswith("#")}
Inherited = distributed_test.DistributedTest._DistTestBase


def forked(target, name, args, kwargs):
    return FORKS.Process(target=run_with, name=name, args=(dict(os.environ), target, args, kwargs))


def run_with(environment, target, args, kwargs):
    os.environ.update(environment)  # the server of the forks has that of the first test
    target(*args, **kwargs)


class TestTorchsOwn(distributed_test.TestDistBackend, Inherited):
    def setUp(self):
        super().setUp()
        # Not _spawn_processes(): each rank would import torch, which takes ten times as long as most tests.
        self._start_processes(forked)


for name in dir(Inherited):
    if name.startswith("test_") and name not in LISTED:
        getattr(Inherited, name).__test__ = False  # not collected


def test_all_that_are_listed_are_there():
    assert len(LISTED) > 50
    assert [name for name in LISTED if not hasattr(Inherited, name)] == []
