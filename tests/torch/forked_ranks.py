# SPDX-License-Identifier: Apache-2.0
"""The ranks of torch's own tests, forked from a server that has imported torch: a rank that imports it anew takes ten
times as long as most tests.

    python -m pytest -p forked_ranks FILE...       for tests on torch's MultiProcessTestCase
"""

import os
import pathlib

import torch.multiprocessing
from torch.testing._internal import common_distributed

FORKS = torch.multiprocessing.get_context("forkserver")  # has few threads, unlike this process


def forked(target, name, args, kwargs):
    return FORKS.Process(target=run_with, name=name, args=(dict(os.environ), target, args, kwargs))


def run_with(environment, target, args, kwargs):
    os.environ.update(environment)  # the server of the forks has that of the first test
    target(*args, **kwargs)


def fork_ranks(test):
    test._start_processes(forked)


def pytest_configure(config):
    """The server finds the files by PYTHONPATH."""
    FORKS.set_forkserver_preload([pathlib.Path(file).stem for file in config.args])
    common_distributed.MultiProcessTestCase._spawn_processes = fork_ranks
