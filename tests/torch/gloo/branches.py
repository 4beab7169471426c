# SPDX-License-Identifier: Apache-2.0
"""Hangs on gloo in which one rank takes another way through the program than the others."""

import threading

import torch
import torch.distributed as dist
from common import WIDTH, main, program

STEPS = 12


def step(group=None):
    dist.all_reduce(torch.ones(WIDTH), group=group)  # hangs: sums_once_more
    dist.barrier(group=group)


@program
def sums_once_more(args):
    """Rank 2 does not trust a sum, and makes it again."""
    for number in range(STEPS):
        if number == 7 and args.rank == 2 and not args.fixed:
            dist.all_reduce(torch.ones(WIDTH))
        step()


@program
def has_fewer_batches(args):
    """Rank 3's part of the data is shorter: it leaves the epoch, and waits for the others at its end."""
    count = STEPS if args.rank != 3 or args.fixed else STEPS - 1
    for _ in range(count):
        dist.all_reduce(torch.ones(WIDTH))
    dist.barrier()  # hangs: has_fewer_batches


@program
def broadcasts_from_itself(args):
    """Rank 2 reads the number of the source from its own file."""
    for number in range(STEPS):
        source = 2 if number == 6 and args.rank == 2 and not args.fixed else 0
        dist.broadcast(torch.ones(WIDTH), src=source)  # hangs: broadcasts_from_itself
        dist.barrier()


@program
def gathers_a_short_batch(args):
    """The last batch of rank 1 is shorter. gloo notices that itself, and ends a rank by an exception."""
    for number in range(STEPS):
        length = WIDTH - 4 if number == STEPS - 1 and args.rank == 1 and not args.fixed else WIDTH
        gathered = [torch.empty(length) for _ in range(args.ranks)]
        dist.all_gather(gathered, torch.ones(length))


@program
def only_the_first_gathers(args):
    """Rank 0 collects what the ranks have to say, and the others never hear of it."""
    for _ in range(STEPS):
        dist.all_reduce(torch.ones(WIDTH))
    if args.rank == 0 or args.fixed:
        words = [None] * args.ranks if args.rank == 0 else None
        dist.gather_object({"rank": args.rank}, words, dst=0)  # hangs: only_the_first_gathers
    for _ in range(STEPS):
        dist.all_reduce(torch.ones(WIDTH))


def watch(stopped):
    """Such as a thread that copies files for as long as the program runs."""
    stopped.wait()


@program
def raises_while_a_thread_lives(args):
    """Rank 1 raises; at its exit Python waits for its thread."""
    stopped = threading.Event()
    threading.Thread(target=watch, args=(stopped,)).start()
    labels = dict.fromkeys(range(STEPS), "label")
    for number in range(STEPS):
        if args.rank == 1 and not args.fixed:
            labels.pop(9, None)
        labels[number]
        dist.all_reduce(torch.ones(WIDTH))
    stopped.set()


if __name__ == "__main__":
    main("gloo")
