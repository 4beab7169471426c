# SPDX-License-Identifier: Apache-2.0
"""An exception that nobody sees, because its handler waits for the others."""

import queue
import threading

import torch
import torch.distributed as dist
from common import batches, main, make_network, program
from torch.nn.parallel import DistributedDataParallel

mse = torch.nn.functional.mse_loss


def make_ddp():
    model = DistributedDataParallel(make_network())
    return model, torch.optim.SGD(model.parameters(), lr=0.01)


def train_step(model, optimizer, inputs, targets, damaged):
    loss = mse(model(inputs), targets)
    if damaged:
        raise ValueError("the loss of this batch is not finite")
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


@program
def destroys_in_finally(args):
    """Rank 2 raises, and its `finally` waits for the others to destroy the communicator."""
    model, optimizer = make_ddp()
    try:
        for number, (inputs, targets) in enumerate(batches(14, args.rank)):
            damaged = number == 9 and args.rank == 2 and not args.fixed
            train_step(model, optimizer, inputs, targets, damaged)
    finally:
        dist.destroy_process_group()  # hangs: destroys_in_finally


class Uploads:
    """A thread that sends what it is given, up to the end mark."""

    def __enter__(self):
        self.files = queue.Queue()
        self.thread = threading.Thread(target=self.send, daemon=True)
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.thread.join()  # hangs: joins_on_its_way_out

    def send(self):
        while self.files.get() is not None:
            pass

    def finish(self):
        self.files.put(None)


def look_up(label, known):
    return known[label]


@program
def joins_on_its_way_out(args):
    """Rank 1 raises inside a `with` block, whose end waits for a thread that got no end mark."""
    model, optimizer = make_ddp()
    with Uploads() as uploads:
        for number, (inputs, targets) in enumerate(batches(14, args.rank)):
            if number == 9 and args.rank == 1 and not args.fixed:
                look_up("label 17", {})
            train_step(model, optimizer, inputs, targets, damaged=False)
        uploads.finish()


def send_files(files):
    while files.get() is not None:
        pass


@program
def thread_keeps_it(args):
    """Rank 2 raises and cannot end: a thread that is no daemon waits for more files."""
    files = queue.Queue()
    threading.Thread(target=send_files, args=(files,)).start()
    model, optimizer = make_ddp()
    for number, (inputs, targets) in enumerate(batches(14, args.rank)):
        damaged = number == 9 and args.rank == 2 and not args.fixed
        train_step(model, optimizer, inputs, targets, damaged)
    files.put(None)


if __name__ == "__main__":
    main()
