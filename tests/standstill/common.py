# SPDX-License-Identifier: Apache-2.0
"""What the programs of this folder share: their registry, the start of a rank, a barrier, slow but healthy work.

    launch.py -n RANKS -- FILE PROGRAM --work FOLDER [--fixed] [--for SECONDS]

A program works in FOLDER. Without --fixed it hangs, outside of every call that Rollcall records. With --fixed it
does the same without its mistake, is slow, idle or odd for that many seconds, and ends with 0. A line with
"# hangs: PROGRAM" is where the culprit of that program stands; the tests expect it.
"""

import argparse
import ctypes
import json
import math
import multiprocessing
import os
import pathlib
import queue
import signal
import socket
import threading
import time

PROGRAMS = {}
UNNAMED = "UNNAMED_PLACE"  # the variables of a rank, as JSON
PR_SET_PDEATHSIG = 1
FORK = multiprocessing.get_context("fork")


def program(function):
    PROGRAMS[function.__name__] = function
    return function


def parse_arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("program", choices=PROGRAMS)
    parser.add_argument("--work", required=True, type=pathlib.Path)
    parser.add_argument("--fixed", action="store_true")
    parser.add_argument("--for", dest="seconds", type=float, default=30)
    return parser.parse_args()


def main():
    """The body of a program whose ranks a launcher starts."""
    os.environ.update(json.loads(os.environ.get(UNNAMED, "{}")))  # /proc shows the first environment only
    args = parse_arguments()
    args.rank, args.ranks = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
    os.chdir(args.work)
    PROGRAMS[args.program](args)
    print(f"rank {args.rank} done", flush=True)


def rounds(args, pause):
    """How many rounds a program makes, and the pause in each: some quick ones before it hangs, slow ones if fixed."""
    if not args.fixed:
        return 6, 0.05
    return max(2, math.ceil(args.seconds / pause)), pause


def publish(name, text=""):
    """Writes a file at once: who sees it, sees all of it."""
    unfinished = pathlib.Path(f"{name}.new")
    unfinished.write_text(text)
    unfinished.rename(name)


def wait_for_file(name):
    """Returns the text of a file that another process publishes."""
    file = pathlib.Path(name)
    while not file.exists():
        time.sleep(0.1)  # hangs: waits_under_the_lock, index_has_another_name, nobody_writes_the_token
    return file.read_text() if file.is_file() else ""


def compile_kernels(seconds):
    """Uses a fifth of a core."""
    end, total = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        burst = time.monotonic() + 0.02
        while time.monotonic() < burst:
            total += sum(range(200)) % 7
        time.sleep(0.08)
    return total


def save_checkpoint(seconds, name="checkpoint"):
    """Writes to a slow disk: 256 KiB a second."""
    end = time.monotonic() + seconds
    with open(name, "wb", buffering=0) as file:
        while time.monotonic() < end:
            file.write(bytes(1 << 17))
            time.sleep(0.5)


def end_with_parent():
    """No process of a hung program must outlive the one that started it."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def start_worker(function, *arguments):
    """A process of multiprocessing that runs the function."""
    def run():
        end_with_parent()
        function(*arguments)
    worker = FORK.Process(target=run, name=function.__name__)
    worker.start()
    return worker


def answer_that_never_comes():
    """A queue whose other side has gone."""
    return queue.Queue()


class Hub:
    """A barrier that a thread of rank 0 keeps: each rank sends it a byte, and waits for one."""

    def __init__(self, args, name="hub"):
        if args.rank == 0:
            server = socket.socket(socket.AF_UNIX)
            server.bind(f"{name}.new")
            server.listen()
            os.rename(f"{name}.new", name)
            threading.Thread(target=self.serve, args=(server, args.ranks), name="hub", daemon=True).start()
        wait_for_file(name)
        self.connection = socket.socket(socket.AF_UNIX)
        self.connection.connect(name)

    @staticmethod
    def serve(server, ranks):
        members = [server.accept()[0] for _ in range(ranks)]
        while all(member.recv(1) for member in members):
            for member in members:
                member.sendall(b"+")

    def meet(self):
        self.connection.sendall(b"+")
        self.connection.recv(1)
