# SPDX-License-Identifier: Apache-2.0
"""No thread of an idle program has fewer frames than the better of gdb and eu-stack finds."""
import os
import pathlib

import pytest

import parity
import programs

BUILD = pathlib.Path(os.environ["ROLLCALL_BUILD"])
HELPER = BUILD / "tests" / "stack_frames"
pytestmark = pytest.mark.skipif(not parity.installed_peers(), reason="neither gdb nor eu-stack")


def start(name, scratch):
    try:
        return programs.PROGRAMS[name](BUILD, scratch)
    except programs.Missing as missing:
        pytest.skip(str(missing))


@pytest.mark.parametrize("name", programs.PROGRAMS)
def test_no_thread_has_fewer_frames(name, tmp_path):
    program = start(name, tmp_path)
    try:
        verdicts = parity.judge_all(HELPER, program.pids())
    finally:
        program.end()
    assert verdicts
    assert all(verdict.peers for verdict in verdicts)
    less = [verdict.describe() for verdict in verdicts if verdict.kind == "less"]
    assert not less, "\n".join(less)


def test_a_lost_frame_is_noticed(tmp_path):
    program = start("blocked threads", tmp_path)
    try:
        verdicts = parity.judge_once(HELPER, program.process.pid, parity.installed_peers())
        code = parity.Code(program.process.pid)
        longest = max(verdicts.values(), key=lambda verdict: len(verdict.ours.frames))
        theirs = max(longest.peers.values(), key=lambda thread: len(thread.frames))
        lost = parity.lacking(longest.ours.frames[:-2], theirs.frames, code)
    finally:
        program.end()
    assert lost == longest.ours.frames[-2:]
