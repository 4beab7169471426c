# SPDX-License-Identifier: Apache-2.0
"""A thread in the background uses the communicator of the training."""

import threading
import time

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from common import batches, main, make_network, program
from torch.nn.parallel import DistributedDataParallel

mse = torch.nn.functional.mse_loss


def make_ddp():
    model = DistributedDataParallel(make_network())
    return model, torch.optim.SGD(model.parameters(), lr=0.01)


def train_step(model, optimizer, inputs, targets):
    loss = mse(model(inputs), targets)
    optimizer.zero_grad()
    loss.backward()  # hangs: saves_beside_training, gathers_beside_training
    optimizer.step()
    return loss.detach()


class Files(dcp.FileSystemWriter):
    """Looks at what the folder holds before it plans, which one rank's disk makes slow."""

    slow = False

    def prepare_local_plan(self, plan):
        if self.slow:
            time.sleep(0.05)
        return super().prepare_local_plan(plan)


def save_later(model, args, number, group):
    files = Files(f"{args.work}/step{number}")
    files.slow = args.rank == args.ranks - 1
    return dcp.async_save({"model": model.module.state_dict()}, storage_writer=files,
                          process_group=group)


@program
def saves_beside_training(args):
    """The thread of async_save() gathers over the communicator in which the main thread reduces."""
    group = dist.new_group(backend="gloo") if args.fixed else None
    model, optimizer = make_ddp()
    saving = None
    for number, (inputs, targets) in enumerate(batches(120, args.rank)):
        train_step(model, optimizer, inputs, targets)
        if number % 40 == 20:
            if saving is not None:
                saving.result()
            saving = save_later(model, args, number, group)
    saving.result()


def gather_losses(losses, args, group):
    """A thread of its own, so that nobody waits for the log."""
    for _ in range(6):
        time.sleep(0.03 + 0.01 * args.rank)
        gathered = [None] * args.ranks
        dist.all_gather_object(gathered, losses[-5:], group=group)  # hangs: gathers_beside_training


@program
def gathers_beside_training(args):
    """A thread of the program gathers the losses for the log, while the main thread trains."""
    group = dist.new_group() if args.fixed else None
    model, optimizer = make_ddp()
    losses = []
    thread = threading.Thread(target=gather_losses, args=(losses, args, group), daemon=True)
    for number, (inputs, targets) in enumerate(batches(150, args.rank)):
        losses.append(float(train_step(model, optimizer, inputs, targets)))
        if number == 20:
            thread.start()
    thread.join()


if __name__ == "__main__":
    main()
