# SPDX-License-Identifier: Apache-2.0
"""Starts the ranks of a program by fork, from a server that has imported the frameworks once.

    launch.py --serve SOCKET MODULES              MODULES: with commas; runs as long as its parent
    launch.py SOCKET RANKS SCRIPT [ARGUMENTS...]  one program; the exit code is that of the first
                                                  rank that failed

torchrun imports PyTorch once for each rank, which takes most of the time of a small program. The
server gives the ranks the environment and the output of the second command, and ends them when it
is gone. The environment of a rank is torchrun's. When a rank fails, the others have a grace
period, as with srun and mpirun. `rollcall run` preloads its library into the second command; the
server has to be started with the same library, which looks at nothing before the first
communicator.
"""

import contextlib
import importlib
import json
import os
import runpy
import select
import signal
import socket
import sys
import threading
import time

GRACE_SECONDS = 15


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def become(rank, ranks, port, script, arguments):
    """Runs the script as this rank and ends the process as the script does."""
    os.environ.update(
        RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(ranks), LOCAL_WORLD_SIZE=str(ranks),
        GROUP_RANK="0", MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    sys.argv = [script, *arguments]
    sys.path[0] = os.path.dirname(os.path.abspath(script))
    runpy.run_path(script, run_name="__main__")
    sys.exit(0)


def wait_for(pids, client):
    """The exit code of the first rank that fails, else 0. Ends all when the client has gone."""
    code, deadline = 0, None
    while pids:
        if select.select([client], [], [], 0.05)[0]:
            deadline = 0
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid != 0:
            pids.discard(pid)
            ended = os.waitstatus_to_exitcode(status)
            if ended != 0 and code == 0:
                code = ended if ended > 0 else 128 - ended
                deadline = time.monotonic() + GRACE_SECONDS if deadline is None else deadline
        if deadline is not None and time.monotonic() > deadline:
            for left in pids:
                os.kill(left, signal.SIGKILL)
            deadline = time.monotonic() + GRACE_SECONDS
    return code


def run_program(client, wanted):
    """Starts the ranks as children of this process. Returns in the ranks' parent only."""
    os.environ.clear()
    os.environ.update(wanted["environment"])
    port, pids = free_port(), set()
    for rank in range(wanted["ranks"]):
        pid = os.fork()
        if pid == 0:
            client.close()
            become(rank, wanted["ranks"], port, wanted["script"], wanted["arguments"])
        pids.add(pid)
    code = wait_for(pids, client)
    with contextlib.suppress(BrokenPipeError):  # the client may have gone
        client.sendall(b"%d\n" % code)


def serve(path, modules):
    for module in filter(None, modules.split(",")):
        importlib.import_module(module)
    if threading.active_count() > 1:
        print(f"launch.py: threads before a fork: {threading.enumerate()}", file=sys.stderr)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # no test asks how a program's parent ends
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen()
    listener.settimeout(2)
    parent = os.getppid()
    while os.getppid() == parent:  # else the tests have been killed
        try:
            client, _ = listener.accept()
        except TimeoutError:
            continue
        message, descriptors, _, _ = socket.recv_fds(client, 1 << 20, 2)
        if os.fork() == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            listener.close()
            os.setsid()
            for descriptor, own in zip(descriptors, (1, 2), strict=True):
                os.dup2(descriptor, own)
                os.close(descriptor)
            run_program(client, json.loads(message))
            os.killpg(0, signal.SIGKILL)  # and what the ranks have started
        client.close()
        for descriptor in descriptors:
            os.close(descriptor)


def ask(path, ranks, script, *arguments):
    """Has the server run a program; returns its exit code."""
    with socket.socket(socket.AF_UNIX) as server:
        server.connect(path)
        wanted = {"ranks": int(ranks), "script": script, "arguments": arguments,
                  "environment": dict(os.environ)}
        socket.send_fds(server, [json.dumps(wanted).encode()], [1, 2])
        return int(server.recv(16) or 1)


if __name__ == "__main__":
    if sys.argv[1] == "--serve":
        serve(*sys.argv[2:])
    else:
        sys.exit(ask(*sys.argv[1:]))
