# SPDX-License-Identifier: Apache-2.0
"""Hangs between ranks at locks of files, in a database and at files that one writes for the others."""

import fcntl
import os
import pathlib
import sqlite3
import time

from common import (
    answer_that_never_comes,
    compile_kernels,
    main,
    program,
    publish,
    rounds,
    save_checkpoint,
    wait_for_file,
)


def take_turns(args, work):
    """Each rank does its work under a lock of the shared folder."""
    with open("cache.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        work()


@program
def waits_under_the_lock(args):
    """Rank 0 holds the lock of the cache, and waits for a file that rank 1 writes once it had the lock."""
    share = args.seconds / args.ranks if args.fixed else 0.2
    if args.rank == 0:
        with open("cache.lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            publish("held")
            save_checkpoint(share)
            if not args.fixed:
                wait_for_file("entry-1")  # hangs: waits_under_the_lock
        wait_for_file("entry-1")
        return
    wait_for_file("held")
    take_turns(args, lambda: save_checkpoint(share, f"cache-{args.rank}"))
    publish(f"entry-{args.rank}")


@program
def keeps_a_record_lock(args):
    """Rank 2 locks its record of a shared file with lockf, and waits for an answer before it unlocks."""
    number, pause = rounds(args, 2)
    with open("index", "a+b") as index:
        for step in range(number):
            fcntl.lockf(index, fcntl.LOCK_EX, 64, 0)
            if step == 3 and args.rank == 2 and not args.fixed:
                answer_that_never_comes().get()  # hangs: keeps_a_record_lock
            compile_kernels(pause / args.ranks)
            fcntl.lockf(index, fcntl.LOCK_UN, 64, 0)
            time.sleep(0.02)


@program
def index_has_another_name(args):
    """Rank 0 writes the index under another name than the one for which the others look."""
    if args.rank > 0:
        wait_for_file("index.json")
        publish(f"seen-{args.rank}")
        return
    if args.fixed:
        save_checkpoint(args.seconds, "index.part")
    publish("index.json" if args.fixed else "index.jsn", "{}")
    for rank in range(1, args.ranks):
        wait_for_file(f"seen-{rank}")  # hangs: index_has_another_name


@program
def nobody_writes_the_token(args):
    """All ranks look for a file that an operator or another job should write."""
    number, pause = rounds(args, 3)
    for step in range(number):
        if args.fixed and args.rank == 0:
            compile_kernels(pause)
            publish(f"token-{step}")
        wait_for_file(f"token-{step}")  # hangs: nobody_writes_the_token


def open_database():
    return sqlite3.connect("trials.db", timeout=3600, isolation_level=None)


@program
def transaction_is_left_open(args):
    """Rank 1 begins a transaction in a database that all share, and waits before it commits."""
    number, pause = rounds(args, 2)
    if not args.fixed:
        number = 10_000  # SQLite is not fair: the others must not end before rank 1 has its turn
    database = open_database()
    database.execute("create table if not exists trials (rank int, step int)")
    for step in range(number):
        database.execute("begin immediate")
        database.execute("insert into trials values (?, ?)", (args.rank, step))
        if step == 3 and args.rank == 1 and not args.fixed:
            answer_that_never_comes().get()  # hangs: transaction_is_left_open
        compile_kernels(pause / args.ranks)
        database.execute("commit")
        time.sleep(0.02)
    database.close()


def claim(name):
    """A lock of another kind: the file that exists is the lock. It stays when its owner dies."""
    while True:
        try:
            os.close(os.open(name, os.O_CREAT | os.O_EXCL))
            return
        except FileExistsError:
            time.sleep(0.2)  # hangs: lock_file_is_left_behind


@program
def lock_file_is_left_behind(args):
    """All ranks wait for a lock file that a killed job has left in the shared folder."""
    if not args.fixed:
        pathlib.Path("build.lock").touch()
    claim("build.lock")
    if args.fixed:
        compile_kernels(args.seconds / args.ranks)
    os.remove("build.lock")


if __name__ == "__main__":
    main()
