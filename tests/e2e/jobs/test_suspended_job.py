# SPDX-License-Identifier: Apache-2.0
"""Somebody stops a whole job for a while (SIGSTOP, the freezer of a control group): nobody waits in it meanwhile."""
import contextlib
import ctypes
import os
import pathlib
import signal
import time

import pytest
from conftest import ROLLCALL, VICTIMS, Service, long, wait_for

HANG_AFTER = 4


def ranks_of(run):
    """The pids of the job's ranks."""
    def children(pid):
        tasks = pathlib.Path(f"/proc/{pid}/task").glob("*/children")
        return [int(child) for task in tasks for child in task.read_text().split()]

    launchers = children(run.process.pid)
    return [rank for launcher in launchers for rank in children(launcher)]


def rank_of(pid):
    variables = pathlib.Path(f"/proc/{pid}/environ").read_text().split("\0")
    return next(int(value) for name, _, value in (variable.partition("=") for variable in variables) if name == "RANK")


@contextlib.contextmanager
def by_signal(pids):
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    yield
    for pid in pids:
        os.kill(pid, signal.SIGCONT)


@contextlib.contextmanager
def by_freezer(pids):
    roots = [pathlib.Path("/sys/fs/cgroup"), pathlib.Path("/sys/fs/cgroup/unified")]
    root = next((root for root in roots if (root / "cgroup.controllers").exists()), None)
    if root is None or not os.access(root, os.W_OK):
        pytest.skip("no control groups of version 2 that this user may make")
    group = root / f"rollcall-test-{os.getpid()}"
    group.mkdir()
    try:
        for pid in pids:
            (group / "cgroup.procs").write_text(str(pid))
        (group / "cgroup.freeze").write_text("1")
        yield
    finally:
        (group / "cgroup.freeze").write_text("0")
        for pid in pids:
            (root / "cgroup.procs").write_text(str(pid))
        group.rmdir()


@contextlib.contextmanager
def by_old_freezer(pids):
    root = pathlib.Path("/sys/fs/cgroup/freezer")
    if not os.access(root / "cgroup.procs", os.W_OK):
        pytest.skip("no freezer of version 1 that this user may use")
    group = root / f"rollcall-test-{os.getpid()}"
    group.mkdir()
    try:
        for pid in pids:
            (group / "cgroup.procs").write_text(str(pid))
        (group / "freezer.state").write_text("FROZEN")
        yield
    finally:
        (group / "freezer.state").write_text("THAWED")
        for pid in pids:
            (root / "cgroup.procs").write_text(str(pid))
        group.rmdir()


PTRACE_DETACH, PTRACE_SEIZE, PTRACE_INTERRUPT = 17, 0x4206, 0x4207
WAIT_FOR_THREADS = 0x40000000  # __WALL


@contextlib.contextmanager
def by_debugger(pids):
    ptrace = ctypes.CDLL(None, use_errno=True).ptrace
    ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
    threads = [int(task.name) for pid in pids for task in pathlib.Path(f"/proc/{pid}/task").iterdir()]
    for thread in threads:
        assert ptrace(PTRACE_SEIZE, thread, None, None) == 0, os.strerror(ctypes.get_errno())
        assert ptrace(PTRACE_INTERRUPT, thread, None, None) == 0, os.strerror(ctypes.get_errno())
        os.waitpid(thread, WAIT_FOR_THREADS)
    yield
    for thread in threads:
        ptrace(PTRACE_DETACH, thread, None, None)


@pytest.mark.parametrize("suspended", [by_signal, long(by_freezer), long(by_old_freezer)])
def test_a_suspended_job_has_no_hang_and_its_waits_count_anew(tmp_path, suspended):
    run = Service([ROLLCALL, "run", "--sim", f"--hang-after={HANG_AFTER}s", "--http=none",
                   f"--report-dir={tmp_path}", "--", VICTIMS / "ranks", "-n", "4", "--",
                   VICTIMS / "one_rank_stops_calling"])
    try:
        wait_for(lambda: len(ranks_of(run)) == 4)
        pids = ranks_of(run)
        time.sleep(1.5)  # three of them wait by now
        with suspended(pids):
            time.sleep(2 * HANG_AFTER)
            assert not list(tmp_path.glob("*-missing_rank"))
        began = time.monotonic()
        run.read_until("rank 3")
        assert time.monotonic() - began > HANG_AFTER - 1.5
    finally:
        run.kill()


@pytest.mark.parametrize("suspended, ranks, words", [
    (by_signal, [1], "rank 1.* is stopped by a signal"),
    # Rank 2 may have entered the call that lacks rank 1 only.
    long(by_signal, [1, 2], "rank(s 1-2| 1|s? 2).* (are|is) stopped by a signal"),
    long(by_debugger, [1], "rank 1.* is stopped by a debugger"),
    long(by_freezer, [1], "rank 1.* is frozen by its control group"),
    long(by_old_freezer, [1], "rank 1.* is frozen by its control group")])
def test_stopped_ranks_are_the_headline(tmp_path, suspended, ranks, words):
    run = Service([ROLLCALL, "run", "--sim", f"--hang-after={HANG_AFTER}s", "--http=none",
                   f"--report-dir={tmp_path}", "--", VICTIMS / "ranks", "-n", "4", "--", VICTIMS / "healthy_mix",
                   "1000000"])
    try:
        wait_for(lambda: len(ranks_of(run)) == 4)
        time.sleep(1.5)
        with suspended([pid for pid in ranks_of(run) if rank_of(pid) in ranks]):
            run.read_until(words)
    finally:
        run.kill()
