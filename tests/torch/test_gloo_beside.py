# SPDX-License-Identifier: Apache-2.0
"""Fifty jobs of four ranks on gloo with Rollcall, beside fifty without: ranks are killed, stopped and forked, throw
through the library's frames, and leave by os._exit. Exit codes and outputs are the same."""

import collections
import os
import subprocess

import pytest
from fork_server import ForkServer
from hang_cases import BUILD
from test_gloo_ends import FILE, PROGRAMS

pytestmark = pytest.mark.long

RANKS = 4
ROUNDS = 5  # of each program, of which there are eleven
LIBRARY = str(BUILD / "lib" / "librollcall.so")


@pytest.fixture(scope="module")
def servers(tmp_path_factory):
    """[without the library, with it]"""
    made = []
    for preload in ({}, {"LD_PRELOAD": LIBRARY}):
        environment = {**os.environ, **preload, "OMP_NUM_THREADS": "1"}
        made.append(ForkServer(tmp_path_factory.mktemp("server"), "torch.distributed,torch.utils.data", environment))
    yield made
    for server in made:
        server.stop()


def result(command, server, program):
    run = subprocess.run([*command, *server.launcher(RANKS), str(FILE), program], capture_output=True, text=True,
                         stdin=subprocess.DEVNULL, timeout=120, env={**os.environ, "OMP_NUM_THREADS": "1"})
    return run.returncode, tuple(sorted(run.stdout.splitlines()))


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_results_are_the_same(program, servers, tmp_path):
    rollcall = [str(BUILD / "bin" / "rollcall"), "run", "--hang-after=30s", f"--report-dir={tmp_path}", "--"]
    plain, watched = collections.Counter(), collections.Counter()
    for _ in range(ROUNDS):
        plain[result([], servers[0], program)] += 1
        watched[result(rollcall, servers[1], program)] += 1
    assert watched == plain
