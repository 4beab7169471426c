# SPDX-License-Identifier: Apache-2.0
"""Hangs of ranks that one program starts itself, with what multiprocessing shares between them.

    spawned.py PROGRAM --work FOLDER [--fixed] [--for SECONDS]
"""

import multiprocessing
import os

from common import (
    Hub,
    answer_that_never_comes,
    compile_kernels,
    end_with_parent,
    main,
    program,
    publish,
    rounds,
    wait_for_file,
)

RANKS = 3
SPAWN = multiprocessing.get_context("spawn")


def start_ranks(function, args, *shared):
    """Each has the variables that a launcher sets. This process has none."""
    args.ranks = RANKS
    ranks = []
    for args.rank in range(RANKS):
        os.environ.update(RANK=str(args.rank), LOCAL_RANK=str(args.rank), WORLD_SIZE=str(RANKS))
        ranks.append(SPAWN.Process(target=function, args=(args, *shared)))
        ranks[-1].start()
    for rank in ranks:
        rank.join()


def load_on_device(slots, seconds, stuck):
    """Under one of the slots that the ranks share, as the memory of a host allows for so many at once."""
    slots.acquire()  # hangs: slots_are_not_released
    if stuck:
        publish("taken")
        answer_that_never_comes().get()  # hangs: slots_are_not_released
    compile_kernels(seconds)
    slots.release()


def load_in_turns(args, slots):
    end_with_parent()
    hub = Hub(args)
    number, pause = rounds(args, 3)
    for step in range(number):
        stuck = step == 4 and args.rank == 1 and not args.fixed
        if step == 4 and args.rank != 1 and not args.fixed:
            wait_for_file("taken")
        load_on_device(slots, pause / RANKS, stuck)
        if step < 4 or args.fixed:
            hub.meet()


@program
def slots_are_not_released(args):
    """Rank 1 has the only slot, and waits for its own thread. The others wait for a slot."""
    start_ranks(load_in_turns, args, SPAWN.Semaphore(1))


if __name__ == "__main__":
    main()
