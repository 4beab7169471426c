# SPDX-License-Identifier: Apache-2.0
"""Calls that some ranks leave out: of gradients, metrics, buckets, or of what a cache already has."""

import functools

import torch
import torch.distributed as dist
from common import WIDTH, batches, main, make_batch, make_network, program
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel

mse = nn.functional.mse_loss


def make_sharded(ranks):
    mesh = init_device_mesh("cpu", (ranks,))
    model = make_network()
    for layer in (model[0], model[2], model[4], model):
        fully_shard(layer, mesh=mesh)
    return model, torch.optim.SGD(model.parameters(), lr=0.01)


def is_finite(model):
    return all(bool(p.grad.to_local().isfinite().all()) for p in model.parameters())


@program
def overflow_in_one_shard(args):
    """Rank 2's shard of the gradients overflowed, so it alone neither clips nor steps."""
    model, optimizer = make_sharded(args.ranks)
    for number, (inputs, targets) in enumerate(batches(12, args.rank)):
        loss = mse(model(inputs), targets)  # hangs: overflow_in_one_shard
        loss.backward()
        if number == 7 and args.rank == 2 and not args.fixed:
            next(model.parameters()).grad.to_local().fill_(float("inf"))
        if is_finite(model):
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
        optimizer.zero_grad()


class Experts(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(4)
        self.experts = nn.ModuleList(nn.Linear(WIDTH, WIDTH * (1 + index)) for index in range(3))
        self.head = nn.Linear(WIDTH, 1)

    def forward(self, x, chosen):
        parts = [self.experts[index](x)[:, :WIDTH] for index in chosen]
        return self.head(torch.tanh(sum(parts)))


def reduce_gradients(model):
    for parameter in model.parameters():
        if parameter.grad is not None:
            dist.all_reduce(parameter.grad)  # hangs: expert_without_tokens


@program
def expert_without_tokens(args):
    """No token of rank 3 goes to the second expert, whose gradient it does not reduce."""
    model = Experts()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
    for number, (inputs, targets) in enumerate(batches(12, args.rank)):
        unused = number == 6 and args.rank == 3 and not args.fixed
        mse(model(inputs, [0, 2] if unused else [0, 1, 2]), targets).backward()
        reduce_gradients(model)
        optimizer.step()
        optimizer.zero_grad()


def reduce_statistics(batch):
    moments = torch.stack([batch.mean(), batch.std()])
    dist.all_reduce(moments)
    return moments


@program
def nothing_left_after_filter(args):
    """The filter of rank 0 leaves nothing of its batch: it tells its size, and continues."""
    sizes = torch.zeros(args.ranks)
    for number in range(16):
        batch = make_batch(number, args.rank)[0]
        limit = -100.0 if number != 10 or args.rank != 0 or args.fixed else 100.0
        batch = batch[batch.sum(1) > limit]
        dist.all_gather_into_tensor(sizes, torch.tensor([float(len(batch))]))  # hangs: nothing_left_after_filter
        if len(batch) == 0:
            continue
        reduce_statistics(batch)


@functools.lru_cache(maxsize=None)
def longest_of(bucket, ranks):
    """All ranks agree on the padding of a bucket, once."""
    lengths = [None] * ranks
    dist.all_gather_object(lengths, bucket)
    return max(lengths)


@program
def padding_is_cached(args):
    """Rank 1 knows the padding of its bucket from before; the others ask all ranks for theirs."""
    model = DistributedDataParallel(make_network())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for number, (inputs, targets) in enumerate(batches(18, args.rank)):
        bucket = 32 * (1 + number // 5)
        if number == 10 and args.rank == 1 and not args.fixed:
            bucket = 32
        longest_of(bucket, args.ranks)
        optimizer.zero_grad()
        mse(model(inputs), targets).backward()  # hangs: padding_is_cached
        optimizer.step()


class Average:
    """A moving average of the weights, which the ranks share every four updates."""

    def __init__(self, model):
        self.weights = [p.detach().clone() for p in model.parameters()]
        self.updates = 0

    def update(self, model):
        for mean, weight in zip(self.weights, model.parameters(), strict=True):
            mean.lerp_(weight.detach(), 0.1)
        self.updates += 1
        if self.updates % 4 == 0:
            self.share()

    def share(self):
        for mean in self.weights:
            dist.broadcast(mean, 0)


@program
def average_counts_apart(args):
    """Ranks 1 and 3 left out an update of the average, so they are not there when the others share it."""
    model = DistributedDataParallel(make_network())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    average = Average(model)
    for number, (inputs, targets) in enumerate(batches(20, args.rank)):
        loss = mse(model(inputs), targets)
        optimizer.zero_grad()
        loss.backward()  # hangs: average_counts_apart
        optimizer.step()
        jumped = number == 9 and args.rank % 2 == 1
        if args.fixed or not jumped:
            average.update(model)


class Recall:
    def __init__(self):
        self.found = torch.zeros(2)

    def update(self, hits, positives):
        self.found += torch.tensor([hits, positives])

    def compute(self):
        dist.all_reduce(self.found)
        value = self.found[0] / self.found[1]
        self.found = torch.zeros(2)
        return value


@program
def recall_without_positives(args):
    """Rank 1 saw no positive sample since the last log and has no recall to compute."""
    model = DistributedDataParallel(make_network())
    recall = Recall()
    for number, (inputs, targets) in enumerate(batches(18, args.rank)):
        mse(model(inputs), targets).backward()  # hangs: recall_without_positives
        rare = number // 3 == 3 and args.rank == 1 and not args.fixed
        recall.update(1.0, 0.0 if rare else 2.0)
        if number % 3 == 2 and recall.found[1] > 0:
            recall.compute()


def scatter_buckets(buckets, ranks):
    for bucket in buckets:
        if bucket.any():
            dist.reduce_scatter_tensor(torch.empty(len(bucket) // ranks), bucket)


@program
def bucket_of_zeros(args):
    """One of the four buckets of rank 2 holds zeros only, and is not worth a call."""
    weights = torch.zeros(args.ranks * 6)
    for step in range(14):
        buckets = torch.ones(4, args.ranks * 8)
        if step == 8 and args.rank == 2 and not args.fixed:
            buckets[1] = 0
        scatter_buckets(buckets, args.ranks)
        dist.all_gather_into_tensor(weights, torch.ones(6))  # hangs: bucket_of_zeros


def reduce_when_ready(parameter):
    dist.all_reduce(parameter.grad)  # hangs: stays_frozen


@program
def stays_frozen(args):
    """All ranks thaw the first layer when their loss is small enough; that of rank 1 is not."""
    model = make_network()
    for parameter in model.parameters():
        parameter.register_post_accumulate_grad_hook(reduce_when_ready)
    model[0].requires_grad_(False)
    for number, (inputs, targets) in enumerate(batches(14, args.rank)):
        if number == 8 and (args.rank != 1 or args.fixed):
            model[0].requires_grad_(True)
        mse(model(inputs), targets).backward()


if __name__ == "__main__":
    main()
