# SPDX-License-Identifier: Apache-2.0
"""Hangs in collectives of gloo: on real PyTorch, without any NCCL."""

import threading

import torch
import torch.distributed as dist
from common import WIDTH, answer_that_never_comes, batches, main, make_network, program
from torch.nn.parallel import DistributedDataParallel

STEPS = 12


def never_ends(args):
    """Where the culprit stands, in the place of the call that the others make."""
    if not args.fixed:
        answer = answer_that_never_comes()
        answer.get()  # hangs: skips_a_sum, misses_a_barrier, misses_a_monitored_barrier, leaves_async_work


def works_on(args):
    """The same in another place."""
    if not args.fixed:
        answer = answer_that_never_comes()
        answer.get()  # hangs: stays_away_from_the_pair, misses_objects, stops_training


def sum_steps(count, group=None):
    for _ in range(count):
        dist.all_reduce(torch.ones(WIDTH), group=group)


@program
def skips_a_sum(args):
    """Rank 1 waits for an answer of its own before the 12th sum."""
    sum_steps(STEPS)
    if args.rank == 1:
        never_ends(args)
    sum_steps(STEPS)


@program
def misses_a_barrier(args):
    sum_steps(2)
    if args.rank == 2:
        never_ends(args)
    dist.barrier()


@program
def misses_a_monitored_barrier(args):
    sum_steps(2)
    if args.rank == 1:
        never_ends(args)
    dist.monitored_barrier()


@program
def leaves_async_work(args):
    """All but rank 0 hold a handle of the sum, and ask now and then whether it is done."""
    sum_steps(STEPS)
    if args.rank == 0:
        never_ends(args)
    work = dist.all_reduce(torch.ones(WIDTH), async_op=True)
    pause = threading.Event()
    while not work.is_completed():
        pause.wait(0.2)
    work.wait()


@program
def broadcasts_instead(args):
    """Rank 2 takes another branch, and makes another call than the others."""
    sum_steps(STEPS)
    values = torch.ones(WIDTH)
    if args.rank == 2 and not args.fixed:
        dist.broadcast(values, src=2)  # hangs: broadcasts_instead
    else:
        dist.all_reduce(values)
    sum_steps(STEPS)


@program
def misses_objects(args):
    """The ranks gather objects, as a save of a checkpoint does; one stays away."""
    sum_steps(3)
    if args.rank == 3:
        works_on(args)
    gathered = [None] * args.ranks
    dist.all_gather_object(gathered, {"rank": args.rank, "names": ["weight"] * (args.rank + 1)})


@program
def swallows_an_exception(args):
    """Rank 1's batch is bad: it skips the step, and with it the sum."""
    for step in range(STEPS):
        try:
            if step == 7 and args.rank == 1 and not args.fixed:
                raise ValueError("a bad batch")
            dist.all_reduce(torch.ones(WIDTH))
        except ValueError as error:
            print(error)
        dist.barrier()  # hangs: swallows_an_exception


@program
def stays_away_from_the_pair(args):
    """A group of the first two ranks, with the name that people gave it."""
    pair = dist.new_group([0, 1], group_desc="pair")
    sum_steps(3)
    if args.rank == 1:
        works_on(args)
    if args.rank < 2:
        sum_steps(1, pair)


@program
def two_groups_in_other_orders(args):
    first = dist.new_group(group_desc="first")
    second = dist.new_group(group_desc="second")
    for _ in range(3):
        sum_steps(1, first)
        sum_steps(1, second)
    turned = args.rank == 0 and not args.fixed
    sum_steps(1, second if turned else first)  # hangs: two_groups_in_other_orders
    sum_steps(1, first if turned else second)


@program
def stops_training(args):
    """DDP on gloo: one rank never begins its last backward pass."""
    model = DistributedDataParallel(make_network())
    for index, (inputs, targets) in enumerate(batches(6, args.rank)):
        if index == 5 and args.rank == 1:
            works_on(args)
        torch.nn.functional.mse_loss(model(inputs), targets).backward()
    del model


if __name__ == "__main__":
    main("gloo")
