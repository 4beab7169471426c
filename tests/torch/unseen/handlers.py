# SPDX-License-Identifier: Apache-2.0
"""Exceptions: the handler, or what runs on the way out, waits for the others, or hides the error."""

import atexit
import concurrent.futures
import contextlib
import queue
import threading
import time

import torch
import torch.distributed as dist
from common import WIDTH, batches, main, make_batch, make_network, program
from torch import nn
from torch.nn.parallel import DistributedDataParallel

mse = nn.functional.mse_loss


def make_ddp():
    model = DistributedDataParallel(make_network())
    return model, torch.optim.SGD(model.parameters(), lr=0.01)


def train_step(model, optimizer, inputs, targets):
    loss = mse(model(inputs), targets)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.detach()


def decode(number, rank, damaged):
    if damaged:
        raise UnicodeDecodeError("utf-8", b"\xff", 0, 1, f"record {number} is damaged")
    return make_batch(number, rank)


@program
def meets_after_error(args):
    """Rank 1 cannot decode a record, and its handler waits for the others before it goes on."""
    model, optimizer = make_ddp()
    for number in range(12):
        try:
            damaged = number == 7 and args.rank == 1 and not args.fixed
            train_step(model, optimizer, *decode(number, args.rank, damaged))
        except UnicodeDecodeError as error:
            print(f"rank {args.rank} leaves out a batch: {error}", flush=True)
            dist.barrier()  # hangs: meets_after_error


@contextlib.contextmanager
def process_group():
    try:
        yield
    finally:
        dist.destroy_process_group()  # hangs: shapes_do_not_fit


@program
def shapes_do_not_fit(args):
    """Rank 1's last batch has another width; the end of the `with` block waits for the others."""
    weights = torch.zeros(args.ranks * WIDTH)
    layer = nn.Linear(WIDTH, 4)
    with process_group():
        for number, (inputs, _) in enumerate(batches(12, args.rank)):
            if number == 8 and args.rank == 1 and not args.fixed:
                inputs = inputs[:, :5]
            layer(inputs)
            dist.all_gather_into_tensor(weights, torch.ones(WIDTH))


class Timings:
    """Gathers at the end how long each rank took."""

    def __init__(self, ranks):
        self.seconds = [None] * ranks

    def __enter__(self):
        self.begin = time.monotonic()
        return self

    def __exit__(self, *_):
        dist.all_gather_object(self.seconds, time.monotonic() - self.begin)  # hangs: timings_on_the_way_out


@program
def timings_on_the_way_out(args):
    """Rank 2 raises in a block whose end gathers timings; the others are in the step."""
    model, optimizer = make_ddp()
    vocabulary = {index: index for index in range(12)}
    if args.rank == 2 and not args.fixed:
        del vocabulary[9]
    for epoch in range(3):
        with Timings(args.ranks):
            for number in range(4 * epoch, 4 * epoch + 4):
                token = vocabulary[number]
                train_step(model, optimizer, *make_batch(token, args.rank))


def sum_of_samples(counter):
    dist.all_reduce(counter)  # hangs: sums_at_exit


@program
def sums_at_exit(args):
    """Rank 3 raises, and what it registered for its exit sums over all ranks."""
    model, optimizer = make_ddp()
    counter = torch.zeros(3)
    atexit.register(sum_of_samples, counter)
    for number, (inputs, targets) in enumerate(batches(10, args.rank)):
        if number == 6 and args.rank == 3 and not args.fixed:
            targets = targets.reshape(4, 2)
        train_step(model, optimizer, inputs, targets)
        counter[0] += len(inputs)
    atexit.unregister(sum_of_samples)
    sum_of_samples(counter)


def prefetch(ready, rank, bad):
    try:
        for number in range(12):
            ready.put(decode(number, rank, number == bad))
    except UnicodeDecodeError as error:
        print(f"prefetch: {error}", flush=True)


@program
def prefetch_gives_up(args):
    """The thread that prefetches for rank 0 logs its exception and ends; the main thread waits for data."""
    model, optimizer = make_ddp()
    ready = queue.Queue(2)
    bad = 8 if args.rank == 0 and not args.fixed else -1
    threading.Thread(target=prefetch, args=(ready, args.rank, bad), daemon=True).start()
    for _ in range(12):
        inputs, targets = ready.get()  # hangs: prefetch_gives_up
        train_step(model, optimizer, inputs, targets)


def watch_folder(stopped):
    while not stopped.is_set():
        time.sleep(0.2)


@program
def watcher_outlives_main(args):
    """Rank 0 raises; at its exit Python waits for the thread of a pool, which watches a folder for ever."""
    pool = concurrent.futures.ThreadPoolExecutor(1)
    stopped = threading.Event()
    pool.submit(watch_folder, stopped)
    model, optimizer = make_ddp()
    for number, (inputs, targets) in enumerate(batches(12, args.rank)):
        if number == 7 and args.rank == 0 and not args.fixed:
            targets = {"labels": targets}["label"]
        train_step(model, optimizer, inputs, targets)
    stopped.set()


def gather_once(values, ranks, damaged):
    gathered = torch.zeros(ranks * len(values))
    dist.all_gather_into_tensor(gathered, values)  # hangs: gathers_again_after_checksum
    if damaged:
        raise ArithmeticError("the checksum of the gathered values differs")
    return gathered


def gather(values, ranks, damaged):
    try:
        return gather_once(values, ranks, damaged)
    except ArithmeticError:
        return gather_once(values, ranks, damaged=False)


@program
def gathers_again_after_checksum(args):
    """Rank 2 does not trust what it gathered, and its handler gathers once more."""
    total = torch.ones(5)
    for number in range(16):
        gather(torch.ones(8), args.ranks, number == 11 and args.rank == 2 and not args.fixed)
        dist.all_reduce(total)


def shard_step(weights, ranks, targets):
    full = torch.empty(ranks * len(weights))
    dist.all_gather_into_tensor(full, weights)  # hangs: continues_after_error
    gradients = full * targets
    dist.reduce_scatter_tensor(torch.empty(len(weights)), gradients)


@program
def continues_after_error(args):
    """Rank 1's targets do not fit; it logs the error between two calls, and goes on to the next step."""
    weights = torch.ones(6)
    for number in range(14):
        bad = number == 9 and args.rank == 1 and not args.fixed
        targets = torch.ones(6 * args.ranks - bad)
        try:
            shard_step(weights, args.ranks, targets)
        except RuntimeError as error:
            print(f"step {number}: {error}", flush=True)


if __name__ == "__main__":
    main()
