# SPDX-License-Identifier: Apache-2.0
"""Healthy, for long: one rank waits for its child processes, which work."""

import multiprocessing
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


if __name__ == "__main__":
    main()
