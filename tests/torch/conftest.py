# SPDX-License-Identifier: Apache-2.0
"""The forks of runs without Rollcall, and what the tests of the frameworks recorded about the first piece of advice."""

import os

import pytest
from fork_server import ForkServer
from hang_cases import BACKEND
from verdict_scores import pytest_sessionfinish, pytest_terminal_summary  # noqa: F401 (hooks of pytest)


@pytest.fixture(scope="session")
def forks(tmp_path_factory):
    """For runs without Rollcall, from which a test needs only the result; None: torchrun starts them."""
    if BACKEND == "nccl":
        yield None
        return
    server = ForkServer(tmp_path_factory.mktemp("forks"), "torch._dynamo,torch.distributed", dict(os.environ))
    yield server
    server.stop()
