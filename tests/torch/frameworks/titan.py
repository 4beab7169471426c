# SPDX-License-Identifier: Apache-2.0
"""A loop as TorchTitan has it: FSDP2 over tensor parallelism, metrics, checkpoints, timeouts."""

import gc
import time

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from common import WIDTH, answer_that_never_comes, main, make_batch, program
from torch import nn
from torch.distributed.checkpoint.state_dict import get_model_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(4)
        self.up = nn.Linear(WIDTH, 2 * WIDTH)
        self.down = nn.Linear(2 * WIDTH, WIDTH)

    def forward(self, inputs):
        return self.down(torch.relu(self.up(inputs)))


class Loop:
    def __init__(self, args):
        self.args = args
        self.mesh = init_device_mesh("cpu", (args.ranks // 2, 2), mesh_dim_names=("dp", "tp"))
        self.model = nn.Sequential(Block(), Block())
        for block in self.model:
            parallelize_module(block, self.mesh["tp"],
                               {"up": ColwiseParallel(), "down": RowwiseParallel()})
            fully_shard(block, mesh=self.mesh["dp"])
        fully_shard(self.model, mesh=self.mesh["dp"])
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01, foreach=False)
        self.step = 0

    def batches(self, number):
        for index in range(number):
            yield make_batch(index, self.mesh["dp"].get_local_rank())[0]

    def train_step(self, inputs):
        loss = self.model(inputs).square().mean()
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad()
        self.step += 1
        return loss.detach()

    def log(self, loss):
        mean = loss.clone()
        dist.all_reduce(mean, group=self.mesh["dp"].get_group())  # hangs: logs_on_rank0
        return float(mean)

    def checkpoint(self):
        dcp.save({"model": get_model_state_dict(self.model)},  # hangs: loader_ends_early
                 checkpoint_id=f"{self.args.work}/step-{self.step}")


@program
def logs_on_rank0(args):
    """Rank 0 alone reduces the loss over the data-parallel mesh, to log it."""
    loop = Loop(args)
    for inputs in loop.batches(16):
        loss = loop.train_step(inputs)
        if loop.step == 12 and (args.rank == 0 or args.fixed):
            loop.log(loss)


@program
def loader_ends_early(args):
    """The loader of rank 3 has one batch less; rank 3 goes on to the last checkpoint."""
    loop = Loop(args)
    for inputs in loop.batches(5 if args.rank == 3 and not args.fixed else 6):
        loop.train_step(inputs)
    loop.checkpoint()
    dist.barrier()


@program
def stages_a_checkpoint(args):
    """Rank 1 waits for the previous asynchronous checkpoint, whose thread is gone."""
    loop = Loop(args)
    for inputs in loop.batches(6):
        loop.train_step(inputs)
        if loop.step == 3 and args.rank == 1 and not args.fixed:
            answer_that_never_comes().get()  # hangs: stages_a_checkpoint


@program
def healthy_titan(args):
    """Healthy: garbage collection by hand, long checkpoints, validation in between."""
    loop = Loop(args)
    for inputs in loop.batches(6):
        loss = loop.train_step(inputs)
        if loop.step == 3:
            gc.collect()
            loop.checkpoint()
            if args.rank == 0:
                time.sleep(7)
            loop.log(loss)
    with torch.no_grad():
        loop.model(inputs)


if __name__ == "__main__":
    main()
