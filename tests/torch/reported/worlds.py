# SPDX-License-Identifier: Apache-2.0
"""Ranks that were told different numbers of ranks. The tests start each as a process of its own, with
its own WORLD_SIZE."""

import datetime
import os
import pathlib
import time

import torch
import torch.distributed as dist
from common import parse_arguments, program, run_rank


def train():
    for _ in range(10):
        dist.all_reduce(torch.ones(8))


@program
def first_counts_five(args):
    """Rank 0 was told five ranks, and four were started: it waits in the store for the fifth, and the
    others wait there for rank 0's id of the communicator."""
    dist.init_process_group("nccl_cpu")  # hangs: first_counts_five
    train()


def meet(store, args, expected):
    """All wait here until rank 0 has seen everybody."""
    store.set(f"ready/{args.rank}", "yes")
    if args.rank == 0:
        store.wait([f"ready/{rank}" for rank in range(expected)])  # hangs: first_expects_four


@program
def first_expects_four(args):
    """The same in a store of the program's own: the file that rank 0 reads says four, not three."""
    store = dist.TCPStore(os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]),
                          is_master=args.rank == 0, wait_for_workers=False,
                          timeout=datetime.timedelta(minutes=30))
    meet(store, args, args.ranks if args.fixed else 4)
    dist.init_process_group("nccl_cpu", store=store, rank=args.rank, world_size=args.ranks)
    train()


def come_last(args):
    """So that NCCL refuses this rank, and not the others."""
    while len(list(pathlib.Path(args.work).glob("ready*"))) < 3:
        time.sleep(0.1)
    time.sleep(1)


@program
def third_counts_five(args):
    """Rank 2 was told five ranks: NCCL refuses it, and it ends with an exception."""
    dist.init_process_group("nccl_cpu")
    if args.rank == 2:
        come_last(args)
    else:
        pathlib.Path(args.work, f"ready{args.rank}").touch()
    train()  # hangs: third_counts_five


def main():
    args = parse_arguments()
    args.rank, args.ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    run_rank(args)


if __name__ == "__main__":
    main()
