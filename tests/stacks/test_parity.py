# SPDX-License-Identifier: Apache-2.0
"""No thread of an idle program has fewer frames than the better of gdb and eu-stack finds."""
import os
import pathlib

import parity
import programs
import pytest

BUILD = pathlib.Path(os.environ["ROLLCALL_BUILD"])
HELPER = BUILD / "tests" / "stack_frames"
pytestmark = pytest.mark.skipif(not parity.installed_peers(), reason="neither gdb nor eu-stack")


def start(name, scratch):
    try:
        return programs.PROGRAMS[name](BUILD, scratch)
    except programs.Missing as missing:
        pytest.skip(str(missing))


@pytest.mark.parametrize("name", [pytest.param(name, marks=() if name in programs.OURS else pytest.mark.long)
                                  for name in programs.PROGRAMS])
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


def judge_fakes(monkeypatch, samples, peer):
    """The verdicts if Rollcall's samples are these, in order, and the peer always sees the same."""
    left = iter(samples)
    monkeypatch.setattr(parity, "take_ours", lambda helper, pid: next(left))
    monkeypatch.setattr(parity, "is_alive", lambda pid, tid: True)
    return parity.judge(HELPER, os.getpid(), {"peer": lambda pid: peer})


def threads(**frames):
    return {int(tid[1:]): parity.Thread(frames=addresses, names=dict.fromkeys(addresses, ""))
            for tid, addresses in frames.items()}


def test_a_thread_that_rollcall_does_not_see_is_lost(monkeypatch):
    verdicts = judge_fakes(monkeypatch, [threads(t1=[1])] * 8, threads(t1=[1], t2=[2]))
    assert {verdict.tid: verdict.kind for verdict in verdicts} == {1: "equal", 2: "less"}


def test_a_frame_that_is_lost_three_times_of_four_is_lost(monkeypatch):
    samples = [threads(t1=[])] * 6 + [threads(t1=[1])] * 2
    assert [verdict.kind for verdict in judge_fakes(monkeypatch, samples, threads(t1=[1]))] == ["less"]


def test_a_thread_that_moves_once_is_judged_again(monkeypatch):
    samples = [threads(t1=[]), threads(t1=[1])] + [threads(t1=[1])] * 6
    assert [verdict.kind for verdict in judge_fakes(monkeypatch, samples, threads(t1=[1]))] == ["equal"]


def test_a_thread_that_the_peer_stopped_elsewhere_is_judged_again(monkeypatch):
    taken = iter([threads(t1=[2, 9]), threads(t1=[2, 9]), threads(t1=[1, 9]), threads(t1=[2, 9])])
    monkeypatch.setattr(parity, "take_ours", lambda helper, pid: threads(t1=[1, 9]))
    monkeypatch.setattr(parity, "is_alive", lambda pid, tid: True)
    verdicts = parity.judge(HELPER, os.getpid(), {"peer": lambda pid: next(taken)})
    assert [verdict.kind for verdict in verdicts] == ["equal"]


def test_a_thread_that_the_peer_always_stops_elsewhere_lacks_frames(monkeypatch):
    monkeypatch.setattr(parity, "take_ours", lambda helper, pid: threads(t1=[1, 9]))
    monkeypatch.setattr(parity, "is_alive", lambda pid, tid: True)
    verdicts = parity.judge(HELPER, os.getpid(), {"peer": lambda pid: threads(t1=[2, 9])})
    assert [verdict.kind for verdict in verdicts] == ["less"]
