# SPDX-License-Identifier: Apache-2.0
"""Starts the ranks of a program by fork, so that all share one import of PyTorch.

    launch.py RANKS MODULES SCRIPT [ARGUMENTS...]      MODULES: imported first, with commas

torchrun imports PyTorch once for each rank, which takes most of the time of a small program. The
environment of a rank is torchrun's. When a rank fails, the launcher ends the others after a grace
period, as srun and mpirun do. The exit code is that of the first rank that failed.
"""

import importlib
import os
import runpy
import signal
import socket
import sys
import time

GRACE_SECONDS = 15


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def become(rank, ranks, port, script, arguments):
    """Runs the script as this rank and ends the process as the script does."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    os.environ.update(
        RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(ranks), LOCAL_WORLD_SIZE=str(ranks),
        GROUP_RANK="0", MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    sys.argv = [script, *arguments]
    sys.path[0] = os.path.dirname(os.path.abspath(script))
    runpy.run_path(script, run_name="__main__")
    sys.exit(0)


def wait_for(pids):
    """The exit code of the first process that fails, else 0."""
    code, deadline = 0, None
    while pids:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid == 0:
            time.sleep(0.05)
        else:
            pids.discard(pid)
            ended = os.waitstatus_to_exitcode(status)
            if ended != 0 and deadline is None:
                code, deadline = ended if ended > 0 else 128 - ended, time.monotonic() + GRACE_SECONDS
        if deadline is not None and time.monotonic() > deadline:
            for left in pids:
                os.kill(left, signal.SIGKILL)
            deadline += GRACE_SECONDS
    return code


def main():
    ranks, modules, script, *arguments = sys.argv[1:]
    for module in filter(None, modules.split(",")):
        importlib.import_module(module)
    port = free_port()
    pids = set()
    for rank in range(int(ranks)):
        pid = os.fork()
        if pid == 0:
            become(rank, int(ranks), port, script, arguments)
        pids.add(pid)

    def end_all(number, _frame):
        for pid in pids:
            os.kill(pid, number)

    signal.signal(signal.SIGTERM, end_all)
    sys.exit(wait_for(pids))


if __name__ == "__main__":
    main()
