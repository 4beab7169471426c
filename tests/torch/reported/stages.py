# SPDX-License-Identifier: Apache-2.0
"""Pipelines: one stage leaves out a call that all stages make, and meets the others nowhere.

Neighbours exchange on communicators of their own, which torch makes at the first send.
"""

import torch
import torch.distributed as dist
from common import WIDTH, main, program

STEPS = 24


def pass_micro_batch(args, step):
    """Activations go up the stages, and gradients down."""
    data = torch.full((4, WIDTH), float(step))
    up, down = args.rank + 1, args.rank - 1
    if down >= 0:
        dist.recv(data, down)  # hangs: last_stage_logs_nothing
    data = torch.tanh(data)
    if up < args.ranks:
        dist.send(data, up)  # hangs: no_experts, no_experts_later, no_words_to_share
        dist.recv(data, up)
    if down >= 0:
        dist.send(data, down)


def balance_experts(args):
    tracker = {}
    for step in range(STEPS):
        pass_micro_batch(args, step)
        if args.rank > 0 or args.fixed:
            tracker["balance"] = torch.ones(3)
        if step % 8 == 7:
            if "balance" not in tracker:
                continue
            dist.all_reduce(tracker["balance"])


@program
def no_experts(args):
    """The first stage has no experts and leaves out the reduction of their balance. No stage has used
    the communicator of all before, so the others wait in the store for the id that stage 0 would make."""
    balance_experts(args)


@program
def no_experts_later(args):
    """The same, when the communicator of all has been used."""
    dist.barrier()
    balance_experts(args)


@program
def no_words_to_share(args):
    """Stages 1 to 3 share the words that they met, on a communicator that is new; stage 1, whose number
    in it is 0, met none and goes on."""
    sharing = dist.new_group([1, 2, 3])
    for step in range(STEPS):
        pass_micro_batch(args, step)
        if step % 6 == 5 and args.rank > 0:
            words = ["a", "b"] if args.rank > 1 or args.fixed else []
            if words:
                dist.broadcast_object_list(words, src=3, group=sharing)


@program
def last_stage_logs_nothing(args):
    """All stages gather their norms every five steps, but the last one has switched its log off."""
    norms = torch.zeros(args.ranks)
    dist.all_gather_into_tensor(norms, torch.ones(1))
    for step in range(STEPS):
        pass_micro_batch(args, step)
        logs = args.rank < args.ranks - 1 or args.fixed
        if step % 5 == 4 and logs:
            dist.all_gather_into_tensor(norms, torch.ones(1))


if __name__ == "__main__":
    main()
