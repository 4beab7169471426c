# SPDX-License-Identifier: Apache-2.0
"""DTensor and tensor parallelism, alone and with data parallelism on a mesh of two dimensions."""

import torch
import torch.distributed as dist
from common import WIDTH, batches, main, make_batch, program
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Shard, distribute_tensor
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, SequenceParallel, parallelize_module

mse = nn.functional.mse_loss


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(4)
        self.norm = nn.LayerNorm(WIDTH)
        self.up = nn.Linear(WIDTH, 2 * WIDTH)
        self.down = nn.Linear(2 * WIDTH, WIDTH)

    def forward(self, inputs):
        hidden = torch.relu(self.up(self.norm(inputs)))
        return self.down(hidden)  # hangs: other_length


def make_parallel(mesh, sequence=False):
    plan = {"up": ColwiseParallel(), "down": RowwiseParallel()}
    if sequence:
        plan = {"norm": SequenceParallel(), "up": ColwiseParallel(input_layouts=Shard(1)),
                "down": RowwiseParallel()}
    model = parallelize_module(Block(), mesh, plan)
    return model, torch.optim.SGD(model.parameters(), lr=0.01, foreach=False)


def train_step(model, optimizer, inputs):
    loss = model(inputs).square().mean()  # hangs: other_length
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return loss.detach()


def log_weights(model):
    return float(model.up.weight.full_tensor().norm())  # hangs: logs_a_weight


@program
def logs_a_weight(args):
    """Rank 0 alone makes a whole tensor of a sharded weight, for a log."""
    mesh = init_device_mesh("cpu", (args.ranks,), mesh_dim_names=("tp",))
    model, optimizer = make_parallel(mesh)
    for number, (inputs, _) in enumerate(batches(8, 0)):
        train_step(model, optimizer, inputs)
        if number == 4 and (args.rank == 0 or args.fixed):
            log_weights(model)


@program
def distributes_alone(args):
    """Rank 0 alone calls distribute_tensor() on a buffer that it has loaded."""
    mesh = init_device_mesh("cpu", (args.ranks,), mesh_dim_names=("tp",))
    model, optimizer = make_parallel(mesh)
    for number, (inputs, _) in enumerate(batches(8, 0)):
        train_step(model, optimizer, inputs)
        if number == 4 and (args.rank == 0 or args.fixed):
            distribute_tensor(torch.ones(8, 8), mesh, [Shard(0)])  # hangs: distributes_alone


@program
def other_length(args):
    """Rank 2 has a longer sequence than its tensor-parallel peers: its batch was not broadcast."""
    mesh = init_device_mesh("cpu", (args.ranks,), mesh_dim_names=("tp",))
    model, optimizer = make_parallel(mesh)
    for number in range(8):
        length = 12 if number == 4 and args.rank == 2 and not args.fixed else 8
        inputs = make_batch(number, 0, length)[0].unsqueeze(0)
        train_step(model, optimizer, inputs)


@program
def skips_on_one_rank(args):
    """On a mesh of 2 by 2, rank 3 skips a batch by a test of its own data."""
    mesh = init_device_mesh("cpu", (2, args.ranks // 2), mesh_dim_names=("dp", "tp"))
    model, optimizer = make_parallel(mesh["tp"])
    for number in range(8):
        inputs = make_batch(number, mesh["dp"].get_local_rank())[0]
        if number == 4 and args.rank == 3 and not args.fixed:
            continue
        loss = model(inputs).square().mean()
        loss.backward()
        for parameter in model.parameters():
            gradient = parameter.grad
            dist.all_reduce(gradient.to_local() if hasattr(gradient, "to_local") else gradient,
                            group=mesh["dp"].get_group())
        optimizer.step()
        optimizer.zero_grad()
    dist.barrier()  # hangs: skips_on_one_rank


@program
def healthy_sequence_parallel(args):
    """Healthy: sequence parallelism, whole tensors made by all, two phases of other lengths."""
    mesh = init_device_mesh("cpu", (args.ranks,), mesh_dim_names=("tp",))
    model, optimizer = make_parallel(mesh, sequence=True)
    for number in range(8):
        inputs = make_batch(number, 0, 8 if number < 4 else 16)[0].unsqueeze(0)
        shard = inputs.chunk(args.ranks, 1)[args.rank]
        train_step(model, optimizer, shard)
    log_weights(model)


if __name__ == "__main__":
    main()
