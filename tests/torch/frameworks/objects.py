# SPDX-License-Identifier: Apache-2.0
"""Object collectives, communicators of some ranks, and torchmetrics."""

import time

import torch
import torch.distributed as dist
import torchmetrics
from common import answer_that_never_comes, batches, main, make_batch, make_network, program
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


@program
def other_source(args):
    """Rank 3 takes the configuration from rank 1, the others from rank 0."""
    model, optimizer = make_ddp()
    train(model, optimizer, args)
    source = 1 if args.rank == 3 and not args.fixed else 0
    options = [{"lr": 0.1}] if args.rank == source else [None]
    dist.broadcast_object_list(options, src=source)  # hangs: other_source
    train(model, optimizer, args)


def gather_predictions(predictions, args):
    gathered = [None] * args.ranks
    dist.all_gather_object(gathered, predictions)  # hangs: reports_its_error
    return gathered


@program
def nothing_to_gather(args):
    """Rank 1 has no predictions and leaves out the gathering."""
    model, optimizer = make_ddp()
    train(model, optimizer, args)
    predictions = [] if args.rank == 1 else [1, 2, 3]
    if predictions or args.fixed:
        gather_predictions(predictions, args)
    for inputs, targets in batches(4, args.rank):
        optimizer.zero_grad()
        mse(model(inputs), targets).backward()  # hangs: nothing_to_gather
        optimizer.step()


@program
def reports_its_error(args):
    """Rank 2 gathers objects in its handler of an exception."""
    model, optimizer = make_ddp()
    for number, (inputs, targets) in enumerate(batches(8, args.rank)):
        optimizer.zero_grad()
        mse(model(inputs), targets).backward()
        optimizer.step()
        try:
            if number == 4 and args.rank == 2:
                raise KeyError("label 17")
        except KeyError as error:
            if not args.fixed:
                gather_predictions(str(error), args)


@program
def new_group_on_some(args):
    """Only its members call new_group(), which all ranks must call: the names of later groups
    differ, and nobody finds the others in the store."""
    model, optimizer = make_ddp()
    train(model, optimizer, args)
    if args.rank < 2 or args.fixed:
        dist.new_group([0, 1])
    everyone = dist.new_group(list(range(args.ranks)))  # hangs: new_group_on_some
    dist.all_reduce(torch.ones(2), group=everyone)  # hangs: new_group_on_some


@program
def rank_in_no_group(args):
    """Rank 3 calls a collective of a communicator that waits for rank 2, which is elsewhere."""
    halves = [dist.new_group([0, 1]), dist.new_group([2, 3])]
    model, optimizer = make_ddp()
    train(model, optimizer, args)
    if args.rank != 2 or args.fixed:
        dist.all_reduce(torch.ones(2), group=halves[args.rank // 2])
    else:
        answer_that_never_comes().get()  # hangs: rank_in_no_group
    train(model, optimizer, args)


def log_accuracy(metric):
    return float(metric.compute())  # hangs: computes_on_rank0


@program
def computes_on_rank0(args):
    """Rank 0 alone computes a metric, which gathers its state from all ranks."""
    model, optimizer = make_ddp()
    metric = torchmetrics.MeanSquaredError(
        distributed_available_fn=lambda: True)
    for inputs, targets in batches(4, args.rank):
        metric.update(model.module(inputs).detach(), targets)
    if args.rank == 0 or args.fixed:
        log_accuracy(metric)
    train(model, optimizer, args)


@program
def other_metric(args):
    """Rank 2 keeps one more metric in its collection than the others."""
    model, optimizer = make_ddp()
    metrics = [torchmetrics.MeanSquaredError()]
    if args.rank == 2 or args.fixed:
        metrics.append(torchmetrics.MeanAbsoluteError())
    for inputs, targets in batches(4, args.rank):
        for metric in metrics:
            metric.update(model.module(inputs).detach(), targets)
    for metric in metrics:
        metric.compute()  # hangs: other_metric
    train(model, optimizer, args)


@program
def healthy_objects(args):
    """Healthy: objects of very different size, a group of two that works while two wait."""
    pair = dist.new_group([0, 1])
    gathered = gather_predictions("x" * (10 ** args.rank), args)
    assert len(gathered[-1]) == 10 ** (args.ranks - 1)
    if args.rank < 2:
        for _ in range(5):
            dist.all_reduce(torch.ones(2), group=pair)
            time.sleep(1.5)
    metric = torchmetrics.MeanSquaredError()
    metric.update(*[make_batch(1, args.rank)[1]] * 2)
    metric.compute()


if __name__ == "__main__":
    main()
