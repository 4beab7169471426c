# SPDX-License-Identifier: Apache-2.0
"""The forks of runs without Rollcall, and what the tests of the frameworks recorded about the first piece of advice."""

import os

import pytest
from fork_server import ForkServer
from hang_cases import BACKEND


@pytest.fixture(scope="session")
def forks(tmp_path_factory):
    """For runs without Rollcall, from which a test needs only the result; None: torchrun starts them."""
    if BACKEND == "nccl":
        yield None
        return
    server = ForkServer(tmp_path_factory.mktemp("forks"), "torch._dynamo,torch.distributed", dict(os.environ))
    yield server
    server.stop()


def pytest_terminal_summary(terminalreporter):
    told = [value for reports in terminalreporter.stats.values() for report in reports
            for name, value in getattr(report, "user_properties", ())
            if name == "first advice" and getattr(report, "when", "") == "call"]
    if not told:
        return
    fits = sum(1 for _, _, fit, _ in told if fit)
    terminalreporter.section("first advice")
    for program, first, fit, summary in told:
        terminalreporter.write_line(f"{'fits' if fit else 'MISS'}  {program}: [{first}] {summary}")
    terminalreporter.write_line(f"first advice fits {fits} of {len(told)}")
