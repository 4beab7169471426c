# SPDX-License-Identifier: Apache-2.0
"""torch.distributed.checkpoint (DCP)."""

import time

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from common import answer_that_never_comes, batches, main, make_network, program
from torch.nn.parallel import DistributedDataParallel

mse = torch.nn.functional.mse_loss


def make_ddp():
    model = DistributedDataParallel(make_network())
    return model, torch.optim.SGD(model.parameters(), lr=0.01)


def train(model, optimizer, args, number=4):
    for inputs, targets in batches(number, args.rank):
        optimizer.zero_grad()
        mse(model(inputs), targets).backward()
        optimizer.step()


def save(model, args):
    dcp.save({"model": model.module.state_dict()},  # hangs: dcp_on_rank0
             checkpoint_id=f"{args.work}/step")


@program
def dcp_on_rank0(args):
    """Rank 0 alone calls dcp.save(), as it would torch.save()."""
    model, optimizer = make_ddp()
    train(model, optimizer, args)
    if args.rank == 0 or args.fixed:
        save(model, args)
    train(model, optimizer, args)


class Uploading(dcp.FileSystemWriter):
    """A writer that sends what it wrote to a store, and waits for the answer."""

    stuck = False

    def write_data(self, plan, planner):
        written = super().write_data(plan, planner)
        if self.stuck:
            answer_that_never_comes().get()  # hangs: writer_waits
        return written


@program
def writer_waits(args):
    """Rank 2's part of the checkpoint is not acknowledged; all wait for it."""
    model, optimizer = make_ddp()
    train(model, optimizer, args)
    writer = Uploading(f"{args.work}/step")
    writer.stuck = args.rank == 2 and not args.fixed
    dcp.save({"model": model.module.state_dict()}, storage_writer=writer)
    train(model, optimizer, args)


@program
def load_fails_on_one(args):
    """Rank 3 does not see the checkpoint on its own mount, and starts from nothing."""
    model, optimizer = make_ddp()
    dcp.save({"model": model.module.state_dict()}, checkpoint_id=f"{args.work}/step")
    seen = not (args.rank == 3 and not args.fixed)
    if seen:
        dcp.load({"model": model.module.state_dict()}, checkpoint_id=f"{args.work}/step")
    for inputs, targets in batches(4, args.rank):
        optimizer.zero_grad()
        mse(model(inputs), targets).backward()  # hangs: load_fails_on_one
        optimizer.step()


@program
def healthy_slow_save(args):
    """Healthy: rank 0 writes its part slowly, all wait inside dcp.save()."""
    model, optimizer = make_ddp()
    train(model, optimizer, args)
    if args.rank == 0:
        time.sleep(7)
    save(model, args)
    dist.barrier()
    train(model, optimizer, args)


if __name__ == "__main__":
    main()
