# SPDX-License-Identifier: Apache-2.0
"""Hangs in sends and receives of gloo: on real PyTorch, without any NCCL."""

import torch
import torch.distributed as dist
from common import WIDTH, answer_that_never_comes, main, program

MESSAGES = 5
ROUNDS = 30  # enough for a habit


def never_ends(args):
    if not args.fixed:
        answer_that_never_comes().get()  # hangs: never_receives, never_sends


def exchange(args, count):
    """Rank 0 sends, rank 1 receives."""
    for _ in range(count):
        if args.rank == 0:
            dist.send(torch.ones(WIDTH), 1)
        else:
            dist.recv(torch.empty(WIDTH), 0)


@program
def never_receives(args):
    exchange(args, MESSAGES)
    if args.rank == 1:
        never_ends(args)
    exchange(args, 1)


@program
def never_sends(args):
    exchange(args, MESSAGES)
    if args.rank == 0:
        never_ends(args)
    exchange(args, 1)


@program
def both_receive_first(args):
    """Each waits for the other to send; side by side, the messages of the rounds before went well."""
    other, got = 1 - args.rank, torch.empty(WIDTH)
    for _ in range(MESSAGES):
        ends = [dist.P2POp(dist.isend, torch.ones(WIDTH), other), dist.P2POp(dist.irecv, got, other)]
        for work in dist.batch_isend_irecv(ends):
            work.wait()
    if args.fixed and args.rank == 0:
        dist.send(torch.ones(WIDTH), other)
    dist.recv(got, other)  # hangs: both_receive_first
    if not args.fixed or args.rank == 1:
        dist.send(torch.ones(WIDTH), other)


@program
def sends_to_the_wrong_rank(args):
    """A ring of three; once rank 1 takes the neighbour on the other side for the next one."""
    for number in range(ROUNDS + 5):
        wrong = number == ROUNDS and args.rank == 1 and not args.fixed
        after = (args.rank + (2 if wrong else 1)) % 3
        sent = dist.isend(torch.ones(WIDTH), after)
        dist.recv(torch.empty(WIDTH), (args.rank + 2) % 3)
        sent.wait()  # hangs: sends_to_the_wrong_rank
    dist.barrier()


@program
def forgets_one_of_the_batch(args):
    """Both send and receive in each round; in the last one rank 1 has nothing to send."""
    other, got = 1 - args.rank, torch.empty(WIDTH)
    for number in range(ROUNDS + 1):
        ends = [dist.P2POp(dist.irecv, got, other)]
        if number != ROUNDS or args.rank != 1 or args.fixed:
            ends.append(dist.P2POp(dist.isend, torch.ones(WIDTH), other))
        for work in dist.batch_isend_irecv(ends):
            work.wait()
    dist.barrier()  # hangs: forgets_one_of_the_batch


@program
def takes_one_too_few(args):
    """Rank 0 sends objects, each as two messages; rank 1 does not take the last one."""
    for number in range(ROUNDS):
        if args.rank == 0:
            dist.send_object_list([{"number": number}], 1)  # hangs: takes_one_too_few
        elif number != ROUNDS - 1 or args.fixed:
            dist.recv_object_list([None], 0)
    dist.barrier()  # hangs: takes_one_too_few


@program
def counts_a_round_twice(args):
    """Each message of an actor has the number of its round as its tag; rank 2 counts a round that it has not sent."""
    tag = 0
    for number in range(1, MESSAGES + 1):
        tag += 2 if number == MESSAGES and args.rank == 2 and not args.fixed else 1
        if args.rank == 0:
            for actor in range(1, dist.get_world_size()):
                dist.recv(torch.empty(WIDTH), actor, tag=tag)
        else:
            dist.send(torch.ones(WIDTH), 0, tag=tag)  # hangs: counts_a_round_twice
        dist.barrier()


@program
def tags_of_one_side(args):
    """The receiver numbers the messages from 1, and the sender does so until it starts over."""
    for number in range(MESSAGES):
        tag = 1 if number == MESSAGES - 1 and args.rank == 0 and not args.fixed else number + 1
        if args.rank == 0:
            dist.send(torch.ones(WIDTH), 1, tag=tag)
        else:
            dist.recv(torch.empty(WIDTH), 0, tag=tag)


@program
def leaves_out_a_report(args):
    """Ranks report to rank 0 with one tag; once rank 2 does not."""
    for number in range(ROUNDS):
        if args.rank == 0:
            for reporter in range(1, dist.get_world_size()):
                dist.recv(torch.empty(WIDTH), reporter, tag=7)
        elif number != MESSAGES or args.rank != 2 or args.fixed:
            dist.send(torch.ones(WIDTH), 0, tag=7)
    dist.barrier()  # hangs: leaves_out_a_report


@program
def takes_one_too_many(args):
    """Rank 0 takes the messages of all ranks in any order; rank 2 sends one less."""
    others = dist.get_world_size() - 1
    if args.rank == 0:
        for _ in range(MESSAGES * others):
            dist.recv(torch.empty(WIDTH))  # hangs: takes_one_too_many
    else:
        for _ in range(MESSAGES - (args.rank == 2 and not args.fixed)):
            dist.send(torch.ones(WIDTH), 0)
    dist.barrier()


if __name__ == "__main__":
    main("gloo")
