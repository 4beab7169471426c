# SPDX-License-Identifier: Apache-2.0
"""Hangs of a rank at objects that a manager of multiprocessing keeps for it and its workers."""

import os
import signal
import time
from multiprocessing.managers import SyncManager

from common import FORK, Hub, end_with_parent, main, program, rounds, start_worker


def start_manager():
    """Ends with its rank, also where that one is killed."""
    manager = SyncManager(ctx=FORK)
    manager.start(end_with_parent)
    return manager


def count_rows(lock, rows, number, pause, dies_at):
    for row in range(number):
        with lock:
            rows.append(row)
            if row == dies_at:
                os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(pause)


@program
def manager_keeps_the_lock(args):
    """A worker of rank 1 was killed while it held a lock that the manager keeps, and rank 1 waits for that lock."""
    hub = Hub(args)
    number, pause = rounds(args, 1.5)
    if args.rank == 1:
        manager = start_manager()
        lock, rows = manager.Lock(), manager.list()
        worker = start_worker(count_rows, lock, rows, number, pause, -1 if args.fixed else 3)
        for row in range(number):
            time.sleep(pause)
            if row == number - 1 and not args.fixed:
                worker.join()
            with lock:  # hangs: manager_keeps_the_lock
                len(rows)
        worker.join()
    hub.meet()


if __name__ == "__main__":
    main()
