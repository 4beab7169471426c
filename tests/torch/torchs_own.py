# SPDX-License-Identifier: Apache-2.0
"""PyTorch's own tests of torch.distributed, which come with torch, on the backend of the variable BACKEND.

    BACKEND=gloo WORLD_SIZE=3 python -m pytest tests/torch/torchs_own.py
"""

import os
import tempfile

os.environ.setdefault("WORLD_SIZE", "2")
os.environ.setdefault("TEMP_DIR", tempfile.mkdtemp())
os.environ.setdefault("DISTRIBUTED_TESTS_DEFAULT_TIMEOUT", "60")

from forked_ranks import FORKS, fork_ranks
from torch.testing._internal.distributed import distributed_test

FORKS.set_forkserver_preload([distributed_test.__name__])
Inherited = distributed_test.DistributedTest._DistTestBase


class TestTorchsOwn(distributed_test.TestDistBackend, Inherited):
    def setUp(self):
        super().setUp()
        fork_ranks(self)  # not _spawn_processes()
