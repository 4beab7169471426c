# SPDX-License-Identifier: Apache-2.0
"""Ten ordinary jobs, each as long as a few seconds, that a watcher might take for hung ones.

    torchrun --nproc-per-node 4 jobs.py NAME [--idle SECONDS] [--state FOLDER]

Each prints its final loss, bit by bit, on rank 0.
"""

import argparse
import os
import pathlib
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.pipelining import PipelineStage, Schedule1F1B
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from torch.nn.parallel import DistributedDataParallel

JOBS = {}


def job(function):
    JOBS[function.__name__] = function
    return function


def make_network(width=32):
    torch.manual_seed(4)
    return nn.Sequential(nn.Linear(16, width), nn.Tanh(), nn.Linear(width, 1))


def batches(number, size=16):
    generator = torch.Generator().manual_seed(100 + dist.get_rank())
    for _ in range(number):
        inputs = torch.randn(size, 16, generator=generator)
        yield inputs, inputs.sum(1, keepdim=True)


def step(model, optimizer, inputs, targets):
    loss = nn.functional.mse_loss(model(inputs), targets)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.detach()


def train(model, number=20):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for inputs, targets in batches(number):
        loss = step(model, optimizer, inputs, targets)
    return loss


@job
def gradient_accumulation(args):
    """Four backward passes for one exchange of gradients."""
    model = DistributedDataParallel(make_network())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for number, (inputs, targets) in enumerate(batches(40), start=1):
        if number % 4 == 0:
            loss = nn.functional.mse_loss(model(inputs), targets)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
        else:
            with model.no_sync():
                nn.functional.mse_loss(model(inputs), targets).backward()
    return loss.detach()


@job
def join_with_uneven_inputs(args):
    """The last rank has half the batches; the others' exchanges go on with its shadow."""
    model = DistributedDataParallel(make_network())
    number = 10 if dist.get_rank() == dist.get_world_size() - 1 else 20
    with model.join():
        loss = train(model, number)
    return loss


@job
def static_graph(args):
    return train(DistributedDataParallel(make_network(), static_graph=True))


@job
def find_unused_parameters(args):
    class Branches(nn.Module):
        def __init__(self):
            super().__init__()
            torch.manual_seed(4)
            self.branches = nn.ModuleList(nn.Linear(16, 1) for _ in range(3))
            self.calls = 0

        def forward(self, inputs):
            self.calls += 1
            return self.branches[(self.calls + dist.get_rank()) % 3](inputs)

    return train(DistributedDataParallel(Branches(), find_unused_parameters=True))


@job
def tensor_parallel(args):
    """Two by two: data parallel over the rows of the mesh, tensor parallel within them."""
    tensor = 2
    mesh = dist.device_mesh.init_device_mesh(
        "cpu", (dist.get_world_size() // tensor, tensor), mesh_dim_names=("dp", "tp"))
    network = parallelize_module(
        make_network(), mesh["tp"], {"0": ColwiseParallel(), "2": RowwiseParallel()})
    optimizer = torch.optim.SGD(network.parameters(), lr=0.01)
    group = mesh["dp"].get_group()
    generator = torch.Generator().manual_seed(100 + mesh["dp"].get_local_rank())
    for _ in range(20):
        inputs = torch.randn(16, 16, generator=generator)
        loss = nn.functional.mse_loss(network(inputs), inputs.sum(1, keepdim=True))
        optimizer.zero_grad()
        loss.backward()
        for parameter in network.parameters():
            dist.all_reduce(parameter.grad.to_local(), dist.ReduceOp.AVG, group=group)
        optimizer.step()
    return loss.detach()


@job
def pipeline_1f1b(args):
    rank, size = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(4 + rank)
    stage = PipelineStage(nn.Sequential(nn.Linear(16, 16), nn.Tanh()), rank, size,
                          torch.device("cpu"))
    schedule = Schedule1F1B(stage, n_microbatches=8, loss_fn=nn.functional.mse_loss)
    optimizer = torch.optim.SGD(stage.submod.parameters(), lr=0.01)
    generator = torch.Generator().manual_seed(9)
    for _ in range(5):
        inputs = torch.randn(32, 16, generator=generator)
        losses = []
        optimizer.zero_grad()
        if rank == 0:
            schedule.step(inputs)
        elif rank == size - 1:
            schedule.step(target=torch.sin(inputs), losses=losses)
        else:
            schedule.step()
        optimizer.step()
    loss = torch.stack(losses).mean().detach() if losses else torch.zeros(())
    dist.broadcast(loss, size - 1)
    return loss


@job
def elastic_restart(args):
    """One worker ends with an error in the first life of the job; torchrun starts all anew."""
    restarts = int(os.environ["TORCHELASTIC_RESTART_COUNT"])
    model = DistributedDataParallel(make_network())
    checkpoint = args.state / "checkpoint.pt"
    if restarts:
        model.module.load_state_dict(torch.load(checkpoint))
    loss = train(model, 10)
    if not restarts:
        if dist.get_rank() == 0:
            torch.save(model.module.state_dict(), checkpoint)
        dist.barrier()
        if dist.get_rank() == 1:
            os._exit(7)
        time.sleep(2)  # the others are at work when it falls
    return loss


@job
def evaluation_on_all_ranks(args):
    model = DistributedDataParallel(make_network())
    for _ in range(3):
        loss = train(model, 10)
        with torch.no_grad():
            error = sum(nn.functional.mse_loss(model(inputs), targets)
                        for inputs, targets in batches(5))
        dist.all_reduce(error)
    return loss


@job
def long_checkpoint_on_one_rank(args):
    """Rank 0 writes for a long time, the others have nothing to do till it tells them."""
    model = DistributedDataParallel(make_network())
    loss = train(model)
    done = args.state / "written"
    if dist.get_rank() == 0:
        time.sleep(args.idle)
        done.touch()
    while not done.exists():
        time.sleep(0.2)
    return train(model)


@job
def gloo_and_nccl(args):
    """Gradients by NCCL; counters and barriers by Gloo, with another number of calls."""
    host = dist.new_group(backend="gloo")
    model = DistributedDataParallel(make_network())
    for number in range(10):
        loss = train(model, 3)
        seen = torch.tensor([number])
        dist.all_reduce(seen, group=host)
        if number % 3 == 0:
            dist.barrier(group=host)
    return loss


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("job", choices=JOBS)
    parser.add_argument("--idle", type=float, default=60)
    parser.add_argument("--state", type=pathlib.Path, default=".")
    parser.add_argument("--backend", default="nccl_cpu")
    args = parser.parse_args()
    dist.init_process_group(args.backend)
    loss = JOBS[args.job](args)
    if dist.get_rank() == 0:
        print(f"final loss {loss.item().hex()}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
