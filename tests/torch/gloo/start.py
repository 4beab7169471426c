# SPDX-License-Identifier: Apache-2.0
"""Hangs on gloo before the first group is there: the programs make it themselves."""

import os

import torch
import torch.distributed as dist
from common import WIDTH, answer_that_never_comes, parse_arguments, program, run_rank


def load_weights(args):
    if args.rank == 1 and not args.fixed:
        answer_that_never_comes().get()  # hangs: never_joins


@program
def never_joins(args):
    """Rank 1 loads its weights before it joins, from a server that does not answer."""
    load_weights(args)
    dist.init_process_group("gloo")
    dist.all_reduce(torch.ones(WIDTH))


if __name__ == "__main__":
    arguments = parse_arguments()
    arguments.rank, arguments.ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    run_rank(arguments)
