# SPDX-License-Identifier: Apache-2.0
"""PyTorch's own tests of torch.distributed, which come with torch, on the backend of the variable BACKEND.

    BACKEND=gloo WORLD_SIZE=3 python -m pytest tests/torch/torchs_own.py
"""

import os
import tempfile

os.environ.setdefault("WORLD_SIZE", "2")
os.environ.setdefault("TEMP_DIR", tempfile.mkdtemp())
os.environ.setdefault("DISTRIBUTED_TESTS_DEFAULT_TIMEOUT", "60")

import torch.multiprocessing
from torch.testing._internal.distributed import distributed_test

FORKS = torch.multiprocessing.get_context("forkserver")  # has few threads, unlike this process
FORKS.set_forkserver_preload([distributed_test.__name__])
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
