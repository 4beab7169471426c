# SPDX-License-Identifier: Apache-2.0
"""Hangs on gloo inside of what PyTorch builds on it: DDP, checkpoints, data loaders, checked calls."""

import pathlib

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as checkpoint
from common import WIDTH, answer_that_never_comes, batches, main, make_network, program
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset

STEPS = 6


def wait_alone(args):
    if not args.fixed:
        answer_that_never_comes().get()  # hangs: checks_each_call


@program
def saves_alone(args):
    """Only rank 0 saves, as it did with torch.save. A distributed checkpoint is saved by all."""
    values = {"weight": torch.ones(WIDTH, WIDTH)}
    dist.all_reduce(values["weight"])
    if args.rank == 0 or args.fixed:
        checkpoint.save(values, checkpoint_id=pathlib.Path(args.work, "saved"))  # hangs: saves_alone
    dist.barrier()


@program
def skips_a_bad_loss(args):
    """DDP: rank 1 leaves out the backward pass of a batch whose loss is no number."""
    model = DistributedDataParallel(make_network())
    for index, (inputs, targets) in enumerate(batches(STEPS, args.rank)):
        bad = index == 3 and args.rank == 1 and not args.fixed
        loss = torch.nn.functional.mse_loss(model(inputs), targets) * (float("nan") if bad else 1)
        if torch.isfinite(loss):
            loss.backward()
        dist.barrier()  # hangs: skips_a_bad_loss
    del model


@program
def checks_each_call(args):
    """With TORCH_DISTRIBUTED_DEBUG=DETAIL a helper group compares the calls, and waits for all ranks there."""
    for number in range(STEPS):
        if number == 4 and args.rank == 1:
            wait_alone(args)
        dist.all_reduce(torch.ones(WIDTH))


class Samples(Dataset):
    def __init__(self, stuck):
        self.stuck = stuck

    def __len__(self):
        return STEPS

    def __getitem__(self, index):
        if index == 4 and self.stuck:
            answer_that_never_comes().get()
        return torch.ones(WIDTH)


@program
def loader_never_delivers(args):
    """The worker of rank 1's data loader waits for ever."""
    loader = DataLoader(Samples(args.rank == 1 and not args.fixed), num_workers=1)
    for batch in loader:  # hangs: loader_never_delivers
        dist.all_reduce(batch)


if __name__ == "__main__":
    main("gloo")
