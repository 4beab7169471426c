# SPDX-License-Identifier: Apache-2.0
"""Hangs in the workers of PyTorch's data loader. The others wait for that rank."""

import fcntl
import os
import threading
import time

import torch
from common import Hub, answer_that_never_comes, main, program, publish, rounds, wait_for_file
from torch.utils.data import DataLoader, Dataset

READING = threading.Lock()


class Samples(Dataset):
    """Each sample is read under a lock of the process, as libraries for images and archives have one."""

    def __init__(self, number, pause):
        self.number, self.pause = number, pause

    def __len__(self):
        return self.number

    def __getitem__(self, index):
        with READING:
            time.sleep(self.pause)
        return torch.ones(16)


@program
def worker_inherits_a_held_lock(args):
    """Rank 1 forks its workers while one of its threads holds the lock under which they read."""
    hub = Hub(args)
    number, pause = rounds(args, 2)
    if args.rank == 1 and not args.fixed:
        reader = threading.Thread(target=Samples(1, 1).__getitem__, args=(0,), name="statistics")
        reader.start()
        time.sleep(0.2)
    for _ in DataLoader(Samples(number, pause), num_workers=1):  # hangs: worker_inherits_a_held_lock
        hub.meet()


class Shards(Dataset):
    """A worker asks for each shard in a pipe, and gets its number in another one."""

    def __init__(self, number, asking, answering):
        self.number, self.asking, self.answering = number, asking, answering

    def __len__(self):
        return self.number

    def __getitem__(self, index):
        os.write(self.asking, b"?")
        return torch.full((16,), os.read(self.answering, 1)[0])


def hand_out(asking, answering, number, pause):
    for index in range(number):
        os.read(asking, 1)
        time.sleep(pause)
        os.write(answering, bytes([index % 256]))


@program
def workers_ask_for_too_many(args):
    """The thread of rank 2 that hands out shards ends before the workers have asked for the last ones."""
    hub = Hub(args)
    number, pause = rounds(args, 1)
    (asked, asking), (answered, answering) = os.pipe(), os.pipe()
    known = number - 2 if args.rank == 2 and not args.fixed else number
    loader = iter(DataLoader(Shards(number, asking, answered), num_workers=2, prefetch_factor=1))
    threading.Thread(target=hand_out, args=(asked, answering, known, pause), name="shards", daemon=True).start()
    for _ in loader:  # hangs: workers_ask_for_too_many
        hub.meet()


class Archive(Dataset):
    """Each sample is unpacked into a cache that all ranks share, under the lock of that cache."""

    def __init__(self, number, pause):
        self.number, self.pause = number, pause

    def __len__(self):
        return self.number

    def __getitem__(self, index):
        with open("archive.lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            time.sleep(self.pause)
        return torch.ones(16)


def clean_cache():
    """Under the lock of the cache, which nobody gives back."""
    lock = open("archive.lock", "w")
    fcntl.flock(lock, fcntl.LOCK_EX)
    publish("cleaned")
    answer_that_never_comes().get()  # hangs: worker_waits_for_a_file_lock


@program
def worker_waits_for_a_file_lock(args):
    """The worker of rank 0, which lives for all epochs, waits for a lock that rank 2 holds, and rank 2 waits."""
    hub = Hub(args)
    number, pause = rounds(args, 2)
    epochs = max(2, number // 3)
    loader = DataLoader(Archive(3, pause), num_workers=1, persistent_workers=True, prefetch_factor=1)
    for epoch in range(epochs):
        last = epoch == epochs - 1 and not args.fixed
        if args.rank == 0:
            if last:
                wait_for_file("cleaned")
            for _ in loader:
                pass
        elif args.rank == 2 and last:
            clean_cache()
        hub.meet()


if __name__ == "__main__":
    main()
