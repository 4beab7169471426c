# SPDX-License-Identifier: Apache-2.0
"""Healthy, for long: one rank waits for its child processes, which work, or for a download."""

import multiprocessing
import pathlib
import socket
import subprocess
import sys
import time

import torch
import torch.distributed as dist
from common import main, program

WORK_SECONDS = 20
BUILD = """
import sys, time
end = time.monotonic() + float(sys.argv[1])
while time.monotonic() < end:
    sum(range(10000))
"""


def tokenize(seconds):
    """A document that takes so long."""
    end, tokens = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        tokens += sum(range(10000)) % 7
    return tokens


@program
def pool_works(args):
    """Rank 0's pool tokenizes documents; the others wait for the rows. Fixed: there are few."""
    dist.barrier()
    rows = [None]
    if args.rank == 0:
        with multiprocessing.Pool(2) as pool:
            documents = [0.5] * (2 if args.fixed else 4 * WORK_SECONDS)
            rows = [pool.map(tokenize, documents)]  # hangs: pool_works
    dist.broadcast_object_list(rows, 0)


@program
def builds_alone(args):
    """Rank 1 runs a long build before its next call."""
    values = torch.zeros(args.ranks * 2)
    for step in range(6):
        if step == 4 and args.rank == 1:
            seconds = "0.5" if args.fixed else str(WORK_SECONDS)
            subprocess.run([sys.executable, "-c", BUILD, seconds], check=True)  # hangs: builds_alone
        dist.all_gather_into_tensor(values, torch.ones(2))


def download(work, pieces):
    """From the server that the test has started."""
    port = pathlib.Path(work, "port")
    while not port.exists():
        time.sleep(0.05)
    with socket.create_connection(("127.0.0.1", int(port.read_text()))) as server:
        server.sendall(b"%d\n" % pieces)
        while server.recv(1 << 16):  # hangs: downloads_weights
            pass


@program
def downloads_weights(args):
    """Rank 2 downloads its weights from a slow server. Fixed: they are small."""
    dist.barrier()
    if args.rank == 2:
        download(args.work, 2 if args.fixed else 5 * WORK_SECONDS)
    dist.all_reduce(torch.ones(4))


if __name__ == "__main__":
    main()
