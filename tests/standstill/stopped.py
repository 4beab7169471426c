# SPDX-License-Identifier: Apache-2.0
"""Hangs of a rank whose child process a signal has stopped. The others wait for that rank."""

import os
import signal
import threading
import time

from common import FORK, Hub, compile_kernels, main, program, start_worker


def pack(results, pause, stops_at):
    for row in range(6):
        if row == stops_at:
            os.kill(os.getpid(), signal.SIGSTOP)
        compile_kernels(pause)
        results.put(row)


def wake(worker, pause, number):
    """A job control that lets the worker rest."""
    for _ in range(number):
        time.sleep(pause)
        os.kill(worker.pid, signal.SIGSTOP)
        time.sleep(pause)
        os.kill(worker.pid, signal.SIGCONT)


@program
def worker_is_stopped(args):
    """A signal has stopped the worker of rank 2, which waits for its next row."""
    hub = Hub(args)
    hub.meet()
    if args.rank == 2:
        results = FORK.Queue()
        worker = start_worker(pack, results, args.seconds / 6 if args.fixed else 0.1, -1 if args.fixed else 3)
        if args.fixed:
            threading.Thread(target=wake, args=(worker, 2, int(args.seconds / 5)), daemon=True).start()
        for _ in range(6):
            results.get()  # hangs: worker_is_stopped
        worker.join()
    hub.meet()


if __name__ == "__main__":
    main()
