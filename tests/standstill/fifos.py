# SPDX-License-Identifier: Apache-2.0
"""Hangs where ranks open named pipes: open() waits until the other end is opened, too."""

import os

from common import answer_that_never_comes, compile_kernels, main, program, publish, rounds, wait_for_file


def make_pipes(args):
    """One for each rank that sends its shards to rank 0."""
    if args.rank == 0:
        for rank in range(1, args.ranks):
            os.mkfifo(f"shards-{rank}")
        publish("pipes")
    wait_for_file("pipes")


def tokenize(args, step, seconds):
    if step == 4 and args.rank == 2 and not args.fixed:
        answer_that_never_comes().get()  # hangs: writer_never_opens
    compile_kernels(seconds)
    return b"%d\n" % step


@program
def writer_never_opens(args):
    """Rank 2 waits before it opens its pipe. Rank 0 waits in open() for it, and rank 1 for a reader of its own pipe."""
    make_pipes(args)
    number, pause = rounds(args, 3)
    for step in range(number):
        if args.rank > 0:
            shard = tokenize(args, step, pause)
            with open(f"shards-{args.rank}", "wb") as pipe:
                pipe.write(shard)
            continue
        for rank in range(args.ranks - 1, 0, -1):
            with open(f"shards-{rank}", "rb") as pipe:
                pipe.read()


if __name__ == "__main__":
    main()
