# SPDX-License-Identifier: Apache-2.0
"""Calls that only some ranks make: to debug, to try again, to measure, to warm up."""

import torch
import torch.distributed as dist
from common import batches, main, make_batch, make_network, program
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel

mse = nn.functional.mse_loss


def make_ddp():
    model = DistributedDataParallel(make_network())
    return model, torch.optim.SGD(model.parameters(), lr=0.01)


def make_sharded(ranks):
    mesh = init_device_mesh("cpu", (ranks,))
    model = make_network()
    for layer in (model[0], model[2], model[4]):
        fully_shard(layer, mesh=mesh, reshard_after_forward=True)
    return model, torch.optim.SGD(model.parameters(), lr=0.01)


def train_step(model, optimizer, inputs, targets):
    loss = mse(model(inputs), targets)
    optimizer.zero_grad()
    loss.backward()  # hangs: warms_up_for_profile, finds_learning_rate
    optimizer.step()
    return loss.detach()


def show_weights(model, loss):
    weight = model[4].weight.full_tensor()  # hangs: shows_weights_of_odd_loss
    print(f"a loss of {float(loss):.1f} with weights of {float(weight.norm()):.3f}", flush=True)


@program
def shows_weights_of_odd_loss(args):
    """A left-over debug print of rank 3, whose loss is odd, gathers a weight."""
    model, optimizer = make_sharded(args.ranks)
    for number, (inputs, targets) in enumerate(batches(12, args.rank)):
        if number == 7 and args.rank == 3 and not args.fixed:
            targets = targets + 1000
        loss = train_step(model, optimizer, inputs, targets)
        if loss > 1000:
            show_weights(model, loss)


def evaluate(model, args, number):
    scores = torch.zeros(args.ranks)
    for inputs, targets in batches(number, args.rank):
        with torch.no_grad():
            score = mse(model(inputs), targets)
        dist.all_gather_into_tensor(scores, score.reshape(1))  # hangs: evaluates_one_more
    return scores.mean()


@program
def evaluates_one_more(args):
    """The validation set does not divide evenly: rank 0 has one batch more than the others."""
    model, optimizer = make_ddp()
    for _ in range(3):
        for inputs, targets in batches(5, args.rank):
            train_step(model, optimizer, inputs, targets)
        evaluate(model.module, args, 4 if args.rank == 0 and not args.fixed else 3)


def forward(model, inputs, short_of_memory):
    hidden = model[1](model[0](inputs))
    if short_of_memory and len(inputs) > 4:
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")
    return model[4](model[3](model[2](hidden)))  # hangs: tries_again_with_less


def forward_with_retry(model, inputs, short_of_memory):
    while True:
        try:
            return forward(model, inputs, short_of_memory)
        except torch.OutOfMemoryError:
            inputs = inputs[: len(inputs) // 2]


@program
def tries_again_with_less(args):
    """Rank 1 runs out of memory in the forward pass and repeats it with half of the batch. Its first layer
    is as large as the second one of the others, so it is found out a call later."""
    model, _ = make_sharded(args.ranks)
    for number, (inputs, _targets) in enumerate(batches(12, args.rank)):
        short = number == 7 and args.rank == 1 and not args.fixed
        forward_with_retry(model, inputs, short).square().mean().backward()
        model.zero_grad()


def profile(model, optimizer, args):
    """The first step that is measured would be slow without one before it."""
    train_step(model, optimizer, *make_batch(999, args.rank))


@program
def warms_up_for_profile(args):
    """Rank 0 alone writes a profile, and makes a step before, to warm up."""
    model, optimizer = make_ddp()
    losses = torch.zeros(args.ranks)
    for number, (inputs, targets) in enumerate(batches(12, args.rank)):
        if number == 6 and args.rank == 0 and not args.fixed:
            profile(model, optimizer, args)
        loss = train_step(model, optimizer, inputs, targets)
        dist.all_gather_into_tensor(losses, loss.reshape(1))


class Meter:
    """Sums over all ranks what it was given, when it goes."""

    def __init__(self):
        self.total = torch.zeros(2)

    def add(self, value):
        self.total += torch.tensor([float(value), 1.0])

    def __del__(self):
        dist.all_reduce(self.total)  # hangs: meter_goes_early


@program
def meter_goes_early(args):
    """Rank 2 starts with a new meter after a jump of its loss, and the old one sums over all ranks."""
    model, optimizer = make_ddp()
    meter = Meter()
    for number, (inputs, targets) in enumerate(batches(12, args.rank)):
        if number == 8 and args.rank == 2 and not args.fixed:
            meter = Meter()
        meter.add(train_step(model, optimizer, inputs, targets))
    del meter


def agree_on_seed(number):
    seed = torch.tensor([1000 + number])
    dist.broadcast(seed, 0)  # hangs: odd_ranks_seed_again
    return torch.Generator().manual_seed(int(seed))


@program
def odd_ranks_seed_again(args):
    """The shards of ranks 1 and 3 end first; they shuffle anew, with a seed from rank 0."""
    model, optimizer = make_ddp()
    generator = agree_on_seed(0)
    for number, (inputs, targets) in enumerate(batches(14, args.rank)):
        left = 9 if args.rank % 2 == 1 and not args.fixed else 14
        if number == left:
            generator = agree_on_seed(number)
        order = torch.randperm(len(inputs), generator=generator)
        train_step(model, optimizer, inputs[order], targets[order])


def find_learning_rate(model, optimizer, args):
    found = {}
    for exponent in range(1, 5):
        optimizer.param_groups[0]["lr"] = 10.0 ** -exponent
        found[exponent] = float(train_step(model, optimizer, *make_batch(exponent, args.rank)))
    return 10.0 ** -min(found, key=found.get)


@program
def finds_learning_rate(args):
    """Rank 0 tries learning rates with the model of all, which wait to be told the best one."""
    model, optimizer = make_ddp()
    rate = torch.tensor([0.01])
    if args.rank == 0:
        tried = model.module if args.fixed else model
        rate[0] = find_learning_rate(tried, optimizer, args)
    dist.broadcast(rate, 0)
    for inputs, targets in batches(6, args.rank):
        train_step(model, optimizer, inputs, targets)


def norm_for_log(model):
    norms = [parameter.grad.norm().full_tensor()  # hangs: logs_norm_of_gradients
             for parameter in model.parameters()]
    return float(torch.stack(norms).norm())


@program
def logs_norm_of_gradients(args):
    """The first rank alone writes the norm of the sharded gradients to its log, every ten steps."""
    model, optimizer = make_sharded(args.ranks)
    for number, (inputs, targets) in enumerate(batches(24, args.rank)):
        mse(model(inputs), targets).backward()
        if number % 10 == 9 and (args.rank == 0 or args.fixed):
            print(f"{norm_for_log(model):.3f}", flush=True)
        optimizer.step()
        optimizer.zero_grad()


if __name__ == "__main__":
    main()
