# SPDX-License-Identifier: Apache-2.0
"""Steps of which one rank leaves a part out, or makes a part twice."""

import contextlib

import torch
import torch.distributed as dist
from common import WIDTH, main, make_batch, make_network, program
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, IterableDataset

PIXELS = 24


class Reader(nn.Module):
    """Reads words, and images where there are any."""

    def __init__(self):
        super().__init__()
        self.words = nn.Linear(WIDTH, WIDTH)
        self.images = nn.Linear(PIXELS, WIDTH)
        self.blocks = nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in range(3))

    def forward(self, words, pixels):
        x = torch.tanh(self.words(words))
        if pixels is not None:
            x = x + self.images(pixels)
        for block in self.blocks:
            x = torch.tanh(block(x))  # hangs: batch_without_images
        return x


@program
def batch_without_images(args):
    """The batch of rank 2 has no images, so it leaves out that part of forward()."""
    torch.manual_seed(4)
    mesh = init_device_mesh("cpu", (args.ranks,), mesh_dim_names=("dp",))
    model = Reader()
    for part in (model.words, model.images, *model.blocks, model):
        fully_shard(part, mesh=mesh)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for number in range(14):
        pixels = torch.ones(8, PIXELS)
        if number == 10 and args.rank == 2 and not args.fixed:
            pixels = None
        loss = model(make_batch(number, args.rank)[0], pixels).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()


def share_scores(losses, hits, ranks):
    """The scores of all ranks; hits: None where no sample has a label."""
    dist.all_reduce(losses)
    if hits is not None:
        gathered = torch.zeros(ranks * len(hits))
        dist.all_gather_into_tensor(gathered, hits)
    count = torch.ones(3)
    dist.all_reduce(count)  # hangs: samples_without_labels
    return losses / count[0]


@program
def samples_without_labels(args):
    """Rank 1's samples have no labels in one step, so it leaves out the second of three calls."""
    for number in range(16):
        labels = number != 12 or args.rank != 1 or args.fixed
        share_scores(torch.ones(5), torch.ones(7) if labels else None, args.ranks)


class ReadOnce(IterableDataset):
    """Rank 0 reads, and all get what it has read."""

    def __init__(self, number):
        self.number = number

    def __iter__(self):
        for number in range(self.number):
            batch = make_batch(number, 0)[0]
            dist.broadcast(batch, 0)  # hangs: fetches_once_more
            yield batch


def next_good(batches, spoil):
    batch = next(batches)
    if spoil:
        batch = batch * float("nan")
    if batch.isnan().any():
        batch = next(batches)
    return batch


@program
def fetches_once_more(args):
    """One batch of rank 1 is damaged, and it alone fetches another one, which a broadcast brings."""
    model = DistributedDataParallel(make_network())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    batches = iter(DataLoader(ReadOnce(20), batch_size=None))
    for step in range(16):
        batch = next_good(batches, step == 11 and args.rank == 1 and not args.fixed)
        loss = model(batch).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def mean_over_ranks(loss):
    total = loss.clone()
    dist.all_reduce(total)  # hangs: measures_again
    return total


def measure(loss, doubtful):
    mean = mean_over_ranks(loss)
    if doubtful:
        mean = mean_over_ranks(loss)
    return mean


@program
def measures_again(args):
    """Rank 2 doubts its loss and measures again; the others go on to the next step."""
    shards = torch.zeros(args.ranks * 4)
    for step in range(20):
        dist.all_gather_into_tensor(shards, torch.ones(4))
        measure(shards.mean().reshape(1), step == 14 and args.rank == 2 and not args.fixed)


def anybody_busy(busy, control):
    flag = torch.tensor([float(busy)])
    dist.all_reduce(flag, group=control)  # hangs: no_room
    return bool(flag > 0)


def run_pass(tokens):
    """One pass through experts of all ranks."""
    dist.all_to_all_single(torch.empty_like(tokens), tokens)


@program
def no_room(args):
    """Rank 1 has no room to propose in one round, leaves out three passes and asks in Gloo who is busy."""
    control = dist.new_group(backend="gloo")
    tokens = torch.ones(args.ranks * 4)
    done = 0
    while anybody_busy(done < 12, control):
        room = done != 8 or args.rank != 1 or args.fixed
        if room:
            for _ in range(3):
                run_pass(tokens)
        run_pass(tokens)
        done += 1


def gather_tokens(tokens, ranks):
    dist.all_gather_into_tensor(torch.empty(ranks * len(tokens)), tokens)


@program
def prompt_is_cached(args):
    """Rank 2 finds its prompt in a cache, leaves out two passes and waits in a barrier of Gloo."""
    control = dist.new_group(backend="gloo")
    tokens = torch.ones(6)
    for request in range(14):
        cached = request == 9 and args.rank == 2 and not args.fixed
        if not cached:
            gather_tokens(tokens, args.ranks)
            gather_tokens(tokens, args.ranks)
        gather_tokens(tokens, args.ranks)
        dist.barrier(group=control)  # hangs: prompt_is_cached


@program
def accumulates_longer(args):
    """Rank 3 accumulates four micro-batches and the others two, so it makes half of their reductions."""
    control = dist.new_group(backend="gloo")
    model = DistributedDataParallel(make_network())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    length = 4 if args.rank == 3 and not args.fixed else 2
    for number in range(48):
        last = number % length == length - 1
        with contextlib.nullcontext() if last else model.no_sync():
            model(make_batch(number, args.rank)[0]).square().mean().backward()
        if last:
            optimizer.step()
            optimizer.zero_grad()
    dist.barrier(group=control)  # hangs: accumulates_longer


if __name__ == "__main__":
    main()
