# SPDX-License-Identifier: Apache-2.0
"""Hangs in waits for keys of PyTorch's stores, after the group has been made."""

import datetime
import pathlib
import time

import torch
import torch.distributed as dist
from common import WIDTH, answer_that_never_comes, main, program

SAVING_SECONDS = 4
LONG = datetime.timedelta(seconds=20)


def store_of_group():
    return dist.distributed_c10d._get_default_store()


def train(steps=3):
    for _ in range(steps):
        dist.all_reduce(torch.ones(WIDTH))


def never_ends(args):
    if not args.fixed:
        answer = answer_that_never_comes()
        answer.get()  # hangs: setter_stands_elsewhere, file_is_never_ready, comes_to_no_barrier
    time.sleep(SAVING_SECONDS)


@program
def setter_stands_elsewhere(args):
    """Rank 0 saves, and tells the others by a key."""
    train()
    store = store_of_group()
    if args.rank == 0:
        never_ends(args)
        store.set("saved", "yes")
    else:
        store.wait(["saved"])
    train()


@program
def file_is_never_ready(args):
    """The same in a FileStore, whose key the others get."""
    train()
    store = dist.PrefixStore("data", dist.FileStore(str(pathlib.Path(args.work, "store")), args.ranks))
    if args.rank == 1:
        never_ends(args)
        store.set("ready", "yes")
    else:
        store.get("ready")
    train()


@program
def comes_to_no_barrier(args):
    """A barrier in the store: who comes last sets the key."""
    train()
    store = store_of_group()
    if args.rank == 2:
        never_ends(args)
    if store.add("arrived", 1) == args.ranks:
        store.set("all-here", "yes")
    store.wait(["all-here"])
    train()


@program
def waits_for_a_wrong_key(args):
    """Rank 2 alone waits for a key that nobody sets, while the others train on."""
    train()
    store = store_of_group()
    if args.rank == 0:
        store.set("epoch-1", "yes")
    if args.rank == 2:
        store.wait(["epoch-1" if args.fixed else "epoch_1"])  # hangs: waits_for_a_wrong_key
    train()


@program
def nobody_sets_the_key(args):
    """All wait, until the wait throws."""
    train()
    store = store_of_group()
    if args.rank == 0 and args.fixed:
        store.set("go", "yes")
    store.wait(["go"], LONG)  # hangs: nobody_sets_the_key
    train()


@program
def member_never_comes(args):
    """Rank 1 does not make the second group."""
    train()
    if args.rank == 1 and not args.fixed:
        answer = answer_that_never_comes()
        answer.get()  # hangs: member_never_comes
    dist.all_reduce(torch.ones(WIDTH), group=dist.new_group())


if __name__ == "__main__":
    main("gloo")
