# SPDX-License-Identifier: Apache-2.0
"""Hangs in a store of PyTorch before the program has made any communicator."""

import datetime
import os
import time

import torch
import torch.distributed as dist
from common import Hub, answer_that_never_comes, compile_kernels, main, program, rounds, save_checkpoint

HOUR = datetime.timedelta(hours=1)
WIDTH = 16


def open_store(args):
    return dist.TCPStore(os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]), is_master=args.rank == 0,
                         wait_for_workers=False, timeout=HOUR)


def train(args, pause=3):
    """Real training on gloo, with a slow step now and then."""
    number, pause = rounds(args, pause)
    for _ in range(number):
        compile_kernels(pause)
        dist.all_reduce(torch.ones(WIDTH))
    dist.destroy_process_group()


@program
def rank_is_never_started(args):
    """The launcher started rank 2 nowhere. The others wait for it where they make the first communicator."""
    dist.init_process_group("gloo", timeout=HOUR)  # hangs: rank_is_never_started
    train(args)


def meet_in_store(store, args, name):
    store.set(f"{name}/{args.rank}", "yes")
    store.wait([f"{name}/{rank}" for rank in range(args.ranks)])  # hangs: one_rank_counts_four


@program
def one_rank_counts_four(args):
    """Rank 1 was told four ranks, the others three: it waits in the store for rank 3, and they wait for rank 1."""
    store = open_store(args)
    meet_in_store(store, args, "ready")
    meet_in_store(store, args, "loaded")
    dist.init_process_group("gloo", store=store, rank=args.rank, world_size=args.ranks)
    train(args)


def read_settings(stuck):
    if stuck:
        answer_that_never_comes().get()  # hangs: first_rank_sets_nothing


@program
def first_rank_sets_nothing(args):
    """Rank 0 does not come to set the key for which the others wait in the program's own store."""
    store = open_store(args)
    hub = Hub(args)
    hub.meet()
    if args.rank == 0:
        read_settings(stuck=not args.fixed)
        save_checkpoint(args.seconds)
        store.set("settings", "{}")
    store.wait(["settings"])
    hub.meet()


@program
def key_is_spelled_otherwise(args):
    """All wait for a key that rank 0 has set under another name."""
    store = open_store(args)
    hub = Hub(args)
    number, pause = rounds(args, 3)
    for step in range(number):
        if args.rank == 0:
            compile_kernels(pause)
            store.set(f"epoch-{step}" if args.fixed or step < 4 else f"epoch_{step}", "begin")
        store.get(f"epoch-{step}")  # hangs: key_is_spelled_otherwise
    hub.meet()


def shuffle(stuck):
    if stuck:
        answer_that_never_comes().get()  # hangs: counter_lacks_one


@program
def counter_lacks_one(args):
    """The others poll a counter in the store to which rank 2 has not added."""
    store = open_store(args)
    hub = Hub(args)
    number, pause = rounds(args, 2)
    for step in range(number):
        time.sleep(pause)
        shuffle(stuck=step == 3 and args.rank == 2 and not args.fixed)
        store.add("arrived", 1)
        while store.add("arrived", 0) < (step + 1) * args.ranks:
            time.sleep(0.1)
    hub.meet()


if __name__ == "__main__":
    main()
