# SPDX-License-Identifier: Apache-2.0
"""Engines without requests: rank 0 reads what comes from outside, in a function of any library, and hands it out.
The others wait in the broadcast of the next request. Each ends with 0 after --for SECONDS.

    launch.py -n RANKS -- FILE PROGRAM --work FOLDER [--fixed] [--for SECONDS]
"""

import os
import socket
import subprocess
import sys

from common import end_with_parent, main, program
from ordinary import end_after

REQUESTS = 6
CLIENT = """
import socket, sys, time
with socket.create_connection(("127.0.0.1", int(sys.argv[1]))) as engine:
    for _ in range(int(sys.argv[2])):
        time.sleep(0.1)
        engine.sendall(b"generate\\n")
    time.sleep(3600)
"""


def start_client(port):
    """In a session of its own, as services are. It keeps its connection after its last request."""
    env = {name: value for name, value in os.environ.items() if name not in ("RANK", "LOCAL_RANK", "LD_PRELOAD")}
    subprocess.Popen([sys.executable, "-c", CLIENT, str(port), str(REQUESTS)], env=env, start_new_session=True,
                     preexec_fn=end_with_parent)


def datagrams():
    """What comes to a port: some requests of this process itself, then none."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("127.0.0.1", 0))
        for _ in range(REQUESTS):
            server.sendto(b"generate", server.getsockname())
        while True:
            yield server.recvfrom(64)[0]


def lines():
    """What a client writes, line by line."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        start_client(server.getsockname()[1])
        yield from server.accept()[0].makefile("r")


def drive(args, requests):
    import torch
    import torch.distributed as dist
    dist.init_process_group("gloo")
    end_after(args)
    if args.rank == 0:
        for number, _ in enumerate(requests()):
            dist.broadcast(torch.full((4,), float(number)), 0)
    while True:
        dist.broadcast(torch.zeros(4), 0)


@program
def takes_datagrams(args):
    drive(args, datagrams)


@program
def reads_lines(args):
    drive(args, lines)


if __name__ == "__main__":
    main()
