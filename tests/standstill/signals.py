# SPDX-License-Identifier: Apache-2.0
"""Hangs of a rank in signals. The others wait for that rank."""

import os
import signal
import threading

from common import Hub, compile_kernels, main, program, publish, rounds, wait_for_file

TAKEN = {signal.SIGUSR1}


@program
def signal_comes_too_early(args):
    """Rank 0 signals rank 1 before rank 1 waits for the signal. A handler has taken it."""
    hub = Hub(args)
    if args.fixed:
        signal.pthread_sigmask(signal.SIG_BLOCK, TAKEN)
    else:
        signal.signal(signal.SIGUSR1, lambda *_: None)
    publish(f"pid-{args.rank}", str(os.getpid()))
    hub.meet()
    if args.rank == 0:
        compile_kernels(args.seconds if args.fixed else 0)
        os.kill(int(wait_for_file("pid-1")), signal.SIGUSR1)
    if args.rank == 1:
        if not args.fixed:
            compile_kernels(0.5)
        signal.sigwait(TAKEN) if args.fixed else signal.pause()  # hangs: signal_comes_too_early
    hub.meet()


class Journal:
    """Lines with a lock. A handler of a signal writes one, too."""

    def __init__(self):
        self.lock, self.lines = threading.Lock(), []

    def write(self, line, seconds=0.0):
        with self.lock:  # hangs: handler_needs_the_lock
            self.lines.append(line)
            compile_kernels(seconds)


@program
def handler_needs_the_lock(args):
    """A handler of rank 2 waits for the lock that the interrupted code holds."""
    hub = Hub(args)
    number, pause = rounds(args, 3)
    journal = Journal()
    signal.signal(signal.SIGALRM, lambda *_: journal.write("still alive"))
    for step in range(number):
        if step == 3 and args.rank == 2 and not args.fixed:
            signal.setitimer(signal.ITIMER_REAL, pause / 2)
        journal.write(f"step {step}", pause)
        hub.meet()


if __name__ == "__main__":
    main()
