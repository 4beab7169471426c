# SPDX-License-Identifier: Apache-2.0
"""Hangs in windows, files and spawned processes of MPI. Needs the package mpi4py, and an MPI with mpirun.

    mpirun -n RANKS FILE PROGRAM --work FOLDER [--fixed] [--for SECONDS]
"""

import os
import sys

from common import (
    PROGRAMS,
    answer_that_never_comes,
    compile_kernels,
    parse_arguments,
    program,
    publish,
    rounds,
    save_checkpoint,
)
from mpi4py import MPI


def count_steps(window, stuck, seconds):
    """In a counter of rank 0, under the lock of its window."""
    window.Lock(0)
    if stuck:
        answer_that_never_comes().get()  # hangs: window_stays_locked
    compile_kernels(seconds)
    window.Unlock(0)


@program
def window_stays_locked(args):
    """Rank 1 locks the window of rank 0, and waits before it unlocks it."""
    window = MPI.Win.Allocate(8, comm=MPI.COMM_WORLD)
    number, pause = rounds(args, 3)
    for step in range(number):
        stuck = step == 4 and args.rank == 1 and not args.fixed
        count_steps(window, stuck, pause / args.ranks)
    window.Free()


def read_shape(stuck):
    if stuck:
        answer_that_never_comes().get()  # hangs: file_is_opened_by_some


@program
def file_is_opened_by_some(args):
    """Rank 2 does not come to MPI.File.Open, which all ranks must call."""
    number, pause = rounds(args, 4)
    for step in range(number):
        if args.rank == 0:
            save_checkpoint(pause, f"shard-{step}")
        read_shape(stuck=step == 4 and args.rank == 2 and not args.fixed)
        MPI.File.Open(MPI.COMM_WORLD, f"rows-{step}", MPI.MODE_CREATE | MPI.MODE_WRONLY).Close()


SPAWNED = """
import os, sys, time
seconds = float(sys.argv[1])
if not seconds:
    os.read(os.pipe()[0], 1)
end = time.monotonic() + seconds
while time.monotonic() < end:
    sum(range(20000))
    time.sleep(0.01)
from mpi4py import MPI
MPI.Comm.Get_parent().Disconnect()
"""


@program
def spawned_process_stands(args):
    """All ranks wait in Spawn for a process that reads a pipe of its own before it comes to MPI."""
    if args.rank == 0:
        publish("spawned.py", SPAWNED)
    command = [os.path.abspath("spawned.py"), str(args.seconds if args.fixed else 0)]
    children = MPI.COMM_WORLD.Spawn(sys.executable, command, 1)  # hangs: spawned_process_stands
    children.Disconnect()


def main():
    args = parse_arguments()
    args.rank, args.ranks = MPI.COMM_WORLD.Get_rank(), MPI.COMM_WORLD.Get_size()
    os.chdir(args.work)
    PROGRAMS[args.program](args)
    print(f"rank {args.rank} done", flush=True)


if __name__ == "__main__":
    main()
