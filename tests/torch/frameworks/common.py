# SPDX-License-Identifier: Apache-2.0
"""What the programs of this folder share: their registry, the start of a rank, small models.

    launch.py SOCKET RANKS FILE PROGRAM [--fixed] --work FOLDER
    FILE PROGRAM [--fixed] --work FOLDER --ranks RANKS       files that start their ranks themselves

A line with "# hangs: PROGRAM" is where the culprit of that program stands; the tests expect it.
"""

import argparse
import os
import queue
import time

import torch
import torch.distributed as dist
from torch import nn

PROGRAMS = {}
BACKEND = os.environ.get("PROGRAM_BACKEND", "nccl_cpu")  # of the programs that can run on others
WIDTH = 16


def program(function):
    PROGRAMS[function.__name__] = function
    return function


def parse_arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("program", choices=PROGRAMS)
    parser.add_argument("--fixed", action="store_true")
    parser.add_argument("--work", required=True)
    parser.add_argument("--ranks", type=int)
    return parser.parse_args()


def run_rank(args):
    """Runs the program as the rank that args names."""
    torch.set_num_threads(1)
    PROGRAMS[args.program](args)
    if dist.is_initialized():
        # PyTorch 2.4 keeps Python's lock while it waits for gloo's threads, which need it to drop their last tensors.
        time.sleep(0.1)
        dist.destroy_process_group()
    print(f"rank {args.rank} done", flush=True)


def main(backend=BACKEND):
    args = parse_arguments()
    dist.init_process_group(backend)
    args.rank, args.ranks = dist.get_rank(), dist.get_world_size()
    run_rank(args)


def make_network(layers=2):
    torch.manual_seed(4)
    parts = []
    for _ in range(layers):
        parts += [nn.Linear(WIDTH, WIDTH), nn.Tanh()]
    return nn.Sequential(*parts, nn.Linear(WIDTH, 1))


def make_batch(number, rank, size=8):
    generator = torch.Generator().manual_seed(1000 * rank + number)
    inputs = torch.randn(size, WIDTH, generator=generator)
    return inputs, inputs.sum(1, keepdim=True)


def batches(number, rank, size=8):
    for index in range(number):
        yield make_batch(index, rank, size)


def answer_that_never_comes():
    """A queue whose other side has gone."""
    return queue.Queue()
