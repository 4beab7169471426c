# SPDX-License-Identifier: Apache-2.0
"""Hangs between a rank and its worker processes of multiprocessing. The others wait for that rank."""

import os
import signal
import time

from common import FORK, Hub, compile_kernels, main, program, rounds, save_checkpoint, start_worker


def shard(results, rows, seconds):
    compile_kernels(seconds)
    results.put(bytes(rows))


@program
def joins_before_it_reads(args):
    """Rank 1 joins its worker before it takes the worker's result, which is larger than a pipe."""
    hub = Hub(args)
    hub.meet()
    results = FORK.Queue()
    if args.rank == 1:
        worker = start_worker(shard, results, 1 << 20, args.seconds if args.fixed else 0)
        if args.fixed:
            results.get()
        worker.join()  # hangs: joins_before_it_reads
    hub.meet()


def append_rows(lock, rows, pause, dies_at):
    for row in range(rows):
        with lock, open("rows", "a") as file:
            file.write(f"{row}\n")
            file.flush()
            if row == dies_at:
                os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(pause)


@program
def lock_of_a_dead_worker(args):
    """Rank 2 waits for a lock that its worker held when it was killed."""
    hub = Hub(args)
    number, pause = rounds(args, 1.5)
    if args.rank == 2:
        lock = FORK.Lock()
        worker = start_worker(append_rows, lock, number, pause, -1 if args.fixed else 3)
        for _ in range(number):
            time.sleep(pause)
            with lock:  # hangs: lock_of_a_dead_worker
                os.stat("rows")
        worker.join()
    hub.meet()


def prepare(barrier, pause):
    compile_kernels(pause)
    barrier.wait()


@program
def barrier_counts_its_owner(args):
    """Rank 1 makes a barrier for its two workers and itself, and never comes to it."""
    hub = Hub(args)
    hub.meet()
    if args.rank == 1:
        barrier = FORK.Barrier(2 if args.fixed else 3)
        workers = [start_worker(prepare, barrier, args.seconds if args.fixed else 0.1) for _ in range(2)]
        for worker in workers:
            worker.join()  # hangs: barrier_counts_its_owner
    hub.meet()


def announce(ready, seconds):
    if seconds:
        save_checkpoint(seconds)
    with ready:
        ready.notify_all()


@program
def notifies_nobody(args):
    """The worker of rank 2 notifies a condition before rank 2 waits for it."""
    hub = Hub(args)
    hub.meet()
    if args.rank == 2:
        ready = FORK.Condition()
        if args.fixed:
            with ready:
                start_worker(announce, ready, args.seconds)
                ready.wait()
        else:
            start_worker(announce, ready, 0).join()
            with ready:
                ready.wait()  # hangs: notifies_nobody
    hub.meet()


def fill(slots, wanted, pause, number):
    for _ in range(number):
        for _ in range(wanted):
            slots.acquire()
            time.sleep(pause)
        for _ in range(wanted):
            slots.release()


@program
def each_takes_one_of_two_slots(args):
    """Two workers of rank 0 each hold one of two slots, and wait for a second one."""
    hub = Hub(args)
    number, pause = rounds(args, 2)
    if args.rank == 0:
        slots = FORK.Semaphore(3 if args.fixed else 2)
        workers = [start_worker(fill, slots, 2, pause, number // 2 + 1) for _ in range(2)]
        for worker in workers:
            worker.join()  # hangs: each_takes_one_of_two_slots
    hub.meet()


if __name__ == "__main__":
    main()
