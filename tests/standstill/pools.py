# SPDX-License-Identifier: Apache-2.0
"""Hangs of a rank in a pool of its own threads or processes. The others wait for that rank."""

import concurrent.futures
import threading
import time

from common import FORK, Hub, compile_kernels, end_with_parent, main, program, rounds

TABLE = threading.Lock()  # of a cache that all tasks of a process share


def decode(part, seconds):
    compile_kernels(seconds)
    return part


def load(pool, step, nests, seconds):
    """In a thread of the pool: hands the parts of a sample on to a pool."""
    parts = [pool.submit(decode, (step, part), seconds) for part in range(2)] if nests else []
    return [part.result() for part in parts]  # hangs: task_waits_for_its_own_pool


@program
def task_waits_for_its_own_pool(args):
    """Both threads of rank 1's pool run tasks that wait for further tasks of the same pool."""
    hub = Hub(args)
    number, pause = rounds(args, 3)
    with concurrent.futures.ThreadPoolExecutor(2) as pool, concurrent.futures.ThreadPoolExecutor(2) as decoders:
        for step in range(number):
            own = step == 3 and args.rank == 1 and not args.fixed
            samples = [pool.submit(load, pool if own else decoders, step, True, pause / 2) for _ in range(2)]
            for sample in samples:
                sample.result()  # hangs: task_waits_for_its_own_pool
            hub.meet()


def look_up(word, seconds):
    with TABLE:
        compile_kernels(seconds)
    return word


def fill_table(seconds):
    with TABLE:
        time.sleep(seconds)


@program
def pool_inherits_a_held_lock(args):
    """The worker of rank 2's pool was forked while a thread of the rank held the lock that all tasks take."""
    hub = Hub(args)
    number, pause = rounds(args, 3)
    filler = threading.Thread(target=fill_table, args=(0.5,), name="filler")
    if args.rank == 2 and not args.fixed:
        filler.start()
        time.sleep(0.1)
    with concurrent.futures.ProcessPoolExecutor(1, mp_context=FORK, initializer=end_with_parent) as pool:
        for step in range(number):
            if args.rank == 2:
                pool.submit(look_up, step, pause).result()  # hangs: pool_inherits_a_held_lock
            hub.meet()


if __name__ == "__main__":
    main()
