# SPDX-License-Identifier: Apache-2.0
"""Training loops with DDP and nothing else: what people write around a step."""

import os
import pathlib
import signal
import socket
import stat
import sys
import time
import urllib.request

import torch
import torch._inductor.compile_fx  # stuck_in_compile is about the compiler, not its import
import torch.distributed as dist
from common import WIDTH, answer_that_never_comes, batches, main, make_batch, make_network, program
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset

mse = torch.nn.functional.mse_loss


def make_ddp():
    model = DistributedDataParallel(make_network())
    return model, torch.optim.SGD(model.parameters(), lr=0.01)


@program
def swallowed_error(args):
    """Rank 1 meets a damaged batch, catches the error and goes on with the next one."""
    model, optimizer = make_ddp()
    for number, (inputs, targets) in enumerate(batches(12, args.rank)):
        if number == 7 and args.rank == 1 and not args.fixed:
            targets = targets.reshape(4, 2)
        try:
            loss = mse(model(inputs), targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        except RuntimeError as error:
            print(f"rank {args.rank} skips batch {number}: {error}", flush=True)
    total = torch.ones(3)
    dist.all_reduce(total)  # hangs: swallowed_error


@program
def continue_on_nan(args):
    """Rank 2 skips a batch whose loss is not a number, before the backward pass."""
    model, optimizer = make_ddp()
    for number, (inputs, targets) in enumerate(batches(12, args.rank)):
        if number == 5 and args.rank == 2:
            targets = targets * float("nan")
        loss = mse(model(inputs), targets)
        if not args.fixed and torch.isnan(loss):
            continue
        optimizer.zero_grad()
        torch.nan_to_num(loss).backward()
        optimizer.step()
    dist.barrier()  # hangs: continue_on_nan


def evaluate(model, rank):
    loss = mse(model(make_batch(99, rank)[0]), make_batch(99, rank)[1]).detach()
    total = loss.clone()
    dist.all_reduce(total)
    return loss, total


@program
def early_stopping(args):
    """Rank 3 stops by its own loss; the others' losses still improve."""
    model, optimizer = make_ddp()
    for epoch in range(4):
        for inputs, targets in batches(5, args.rank):
            optimizer.zero_grad()
            mse(model(inputs), targets).backward()
            optimizer.step()
        own, total = evaluate(model.module, args.rank)
        stop = torch.tensor(float(epoch == 1 and args.rank == 3))
        if args.fixed:
            dist.all_reduce(stop)
        if stop > 0:
            print(f"rank {args.rank} stops early at {float(own):.3f}", flush=True)
            break
    dist.barrier()  # hangs: early_stopping


@program
def out_of_memory(args):
    """The kernel kills the rank that takes too much memory."""
    model, optimizer = make_ddp()
    for number, (inputs, targets) in enumerate(batches(10, args.rank)):
        if number == 6 and args.rank == 3 and not args.fixed:
            os.kill(os.getpid(), signal.SIGKILL)
        optimizer.zero_grad()
        mse(model(inputs), targets).backward()
        optimizer.step()


class Samples(Dataset):
    def __init__(self, bad):
        self.bad = bad

    def __len__(self):
        return 64

    def __getitem__(self, index):
        if index == self.bad:
            answer_that_never_comes().get()
        return make_batch(index, 0, 1)[0][0], torch.ones(1)


@program
def stalled_worker(args):
    """A worker process of rank 1's data loader never delivers sample 40."""
    model, optimizer = make_ddp()
    samples = Samples(40 if args.rank == 1 and not args.fixed else -1)
    loader = DataLoader(samples, batch_size=8, num_workers=1)
    for inputs, targets in loader:  # hangs: stalled_worker
        optimizer.zero_grad()
        mse(model(inputs), targets).backward()
        optimizer.step()


@program
def stuck_in_compile(args):
    """Rank 2 meets a new shape; its C++ compiler does not come back."""
    if args.rank == 2 and not args.fixed:
        compiler = pathlib.Path(args.work, "g++")
        compiler.write_text('#!/bin/sh\ncase "$*" in *--version*) echo g++ 12.2.0;; '
                            '*) sleep 600;; esac\n')
        compiler.chmod(compiler.stat().st_mode | stat.S_IEXEC)
        torch._inductor.config.cpp.cxx = (None, str(compiler))  # it has read the variable CXX
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = f"{args.work}/inductor{args.rank}"
    model, optimizer = make_ddp()
    activation = torch.compile(torch.nn.functional.gelu,
                               backend="eager" if args.fixed else "inductor")
    for number, (inputs, targets) in enumerate(batches(8, args.rank)):
        if number == 5 and args.rank == 2:
            inputs = activation(inputs)  # hangs: stuck_in_compile
        optimizer.zero_grad()
        mse(model(inputs), targets).backward()
        optimizer.step()


def fetch_weights(url):
    with urllib.request.urlopen(url, timeout=900) as answer:  # hangs: slow_download
        return answer.read()


@program
def slow_download(args):
    """Rank 1 fetches a file from a server that accepts and never answers."""
    model, optimizer = make_ddp()
    server = socket.create_server(("127.0.0.1", 0))
    for number, (inputs, targets) in enumerate(batches(8, args.rank)):
        if number == 4 and args.rank == 1 and not args.fixed:
            fetch_weights(f"http://127.0.0.1:{server.getsockname()[1]}/weights")
        optimizer.zero_grad()
        mse(model(inputs), targets).backward()
        optimizer.step()


@program
def breakpoint_left(args):
    """A breakpoint on rank 0, at a terminal that nobody looks at."""
    model, optimizer = make_ddp()
    terminal, side = os.openpty()
    sys.stdin = os.fdopen(side, "r")
    for number, (inputs, targets) in enumerate(batches(8, args.rank)):
        if number == 4 and args.rank == 0 and not args.fixed:
            input("inspect the batch, then press Return: ")  # hangs: breakpoint_left
        optimizer.zero_grad()
        mse(model(inputs), targets).backward()
        optimizer.step()
    os.close(terminal)


def upload_checkpoint(answers):
    answers.get()  # hangs: upload_waits


@program
def upload_waits(args):
    """Rank 0 waits for an upload to finish, whose thread has died."""
    model, optimizer = make_ddp()
    for number, (inputs, targets) in enumerate(batches(8, args.rank)):
        if number == 4 and args.rank == 0 and not args.fixed:
            upload_checkpoint(answer_that_never_comes())
        optimizer.zero_grad()
        mse(model(inputs), targets).backward()
        optimizer.step()


@program
def collective_in_log(args):
    """Rank 0 alone averages the loss for its log."""
    model, optimizer = make_ddp()
    for number, (inputs, targets) in enumerate(batches(8, args.rank)):
        optimizer.zero_grad()
        loss = mse(model(inputs), targets)
        loss.backward()
        optimizer.step()
        if number == 4 and (args.rank == 0 or args.fixed):
            dist.all_reduce(loss.detach().clone())  # hangs: collective_in_log


@program
def healthy_slow_rank(args):
    """Healthy: rank 2 pauses again and again, as long as half of the limit."""
    model, optimizer = make_ddp()
    for number, (inputs, targets) in enumerate(batches(6, args.rank)):
        if number % 3 == 2 and args.rank == 2:
            time.sleep(7)
        optimizer.zero_grad()
        mse(model(inputs), targets).backward()
        optimizer.step()


@program
def healthy_join(args):
    """Healthy: uneven batches inside model.join(), errors caught on all ranks alike."""
    model, optimizer = make_ddp()
    with model.join():
        for inputs, targets in batches(4 + 3 * args.rank, args.rank):
            try:
                if inputs.shape[1] != WIDTH:
                    raise RuntimeError("damaged")
                optimizer.zero_grad()
                mse(model(inputs), targets).backward()
                optimizer.step()
            except RuntimeError:
                continue


if __name__ == "__main__":
    main()
