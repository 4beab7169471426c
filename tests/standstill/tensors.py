# SPDX-License-Identifier: Apache-2.0
"""Hangs in queues of tensors between a rank and a process that it has started. The others wait for that rank."""

import torch
import torch.multiprocessing
from common import Hub, answer_that_never_comes, compile_kernels, end_with_parent, main, program, rounds

FORK = torch.multiprocessing.get_context("fork")
WIDTH = 1024


def log_histograms(tensors, number, seconds, stops_at):
    end_with_parent()
    for step in range(number):
        if step == stops_at:
            answer_that_never_comes().get()
        compile_kernels(seconds)
        tensors.get()


@program
def nobody_takes_tensors(args):
    """The process of rank 2 that takes its tensors waits for something else, and the queue is full."""
    hub = Hub(args)
    number, pause = rounds(args, 3)
    tensors = FORK.Queue(1)
    if args.rank == 2:
        stops_at = -1 if args.fixed else 2
        logger = FORK.Process(target=log_histograms, args=(tensors, number, pause, stops_at))
        logger.start()
    for step in range(number):
        if args.rank == 2:
            tensors.put(torch.full((WIDTH,), float(step)))  # hangs: nobody_takes_tensors
        hub.meet()
    if args.rank == 2:
        logger.join()


if __name__ == "__main__":
    main()
