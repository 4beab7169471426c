# SPDX-License-Identifier: Apache-2.0
"""Hangs of a rank in a pool of its own threads. The others wait for that rank."""

import concurrent.futures

from common import Hub, compile_kernels, main, program, rounds


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


if __name__ == "__main__":
    main()
