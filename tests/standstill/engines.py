# SPDX-License-Identifier: Apache-2.0
"""Hangs of a small serving engine: a scheduler process, and a worker a rank, which reads its broadcast queue.

Rank 0 starts the scheduler, which is no rank. It takes requests from a socket, broadcasts each as a step to all
workers, and waits for the answer of each worker in a pipe. A client asks every now and then.
"""

import os
import signal
import socket
import subprocess
import sys
import threading
import time

from broadcast_queue import SLOTS, BroadcastQueue
from common import (
    compile_kernels,
    end_with_parent,
    main,
    program,
    publish,
    rounds,
    start_worker,
    wait_for_file,
)

LAST = {"method": "shutdown"}


def pipe_of(rank):
    return f"answers-{rank}"


def answers_of(ranks):
    """The scheduler's ends of the pipes in which the workers answer."""
    return [open(pipe_of(rank), "rb", buffering=0) for rank in range(ranks)]


class Scheduler:
    def __init__(self, ranks):
        self.queue, self.answers = BroadcastQueue("broadcast", ranks), answers_of(ranks)

    def step(self, number, broadcasts=True):
        if broadcasts:
            self.queue.enqueue({"method": "step", "number": number})
        for answer in self.answers:
            answer.read(8)  # hangs: scheduler_decides_alone


def serve(ranks, number, alone_at):
    """The scheduler: a step for each request. It believes that the workers know one step already."""
    scheduler = Scheduler(ranks)
    server = socket.create_server(("127.0.0.1", 0))
    publish("engine", str(server.getsockname()[1]))
    client = server.accept()[0]
    for step in range(number):
        client.recv(8)
        scheduler.step(step, broadcasts=step != alone_at)
        client.sendall(b"an answer")
    scheduler.queue.enqueue(LAST)


def broadcast_all(ranks, number, pause):
    """A scheduler that does not wait for answers: the queue alone slows it down."""
    queue = BroadcastQueue("broadcast", ranks)
    publish("engine", "0")
    for step in range(number):
        time.sleep(pause)
        queue.enqueue({"method": "step", "number": step})
    queue.enqueue(LAST)


def ask(number, pause):
    """A client, which is part of rank 0's process."""
    with socket.create_connection(("127.0.0.1", int(wait_for_file("engine")))) as engine:
        for _ in range(number):
            time.sleep(pause)
            engine.sendall(b"generate")
            engine.recv(16)


def run_engine(args, execute, alone_at=-1, pause=3, first=0):
    """execute(step) is what a worker does. first: the position at which this worker's reader starts."""
    number, pause = rounds(args, pause)
    if args.rank == 0:
        for rank in range(args.ranks):
            os.mkfifo(pipe_of(rank))
        publish("pipes")
        start_worker(serve, args.ranks, number, alone_at)
        threading.Thread(target=ask, args=(number, pause), name="client", daemon=True).start()
    wait_for_file("pipes")
    answers = open(pipe_of(args.rank), "wb", buffering=0)
    wait_for_file("engine")
    run_worker(args.rank, BroadcastQueue("broadcast", args.ranks), answers, execute, first)


def run_worker(rank, queue, answers, execute, first=0):
    queue.position = first
    while (message := queue.dequeue(rank)) != LAST:  # hangs: reader_is_a_message_ahead
        execute(message["number"])
        answers.write(b"computed")


@program
def worker_is_dead(args):
    """Rank 2 was killed in a step. The scheduler takes the end of its pipe for an answer, until its queue is full."""
    def execute(step):
        compile_kernels(0.2)
        if step == 0 and args.rank == 2 and not args.fixed:
            os.kill(os.getpid(), signal.SIGKILL)

    run_engine(args, execute)


COMPILER = "import sys, time\nexec(sys.stdin.read())\nprint('compiled', flush=True)"
SLOW = "end = time.monotonic() + {}\nwhile time.monotonic() < end: sum(range(20000)); time.sleep(0.01)"


def compile_shape(seconds):
    """In a process of its own, which is given the source and, by mistake, never its end."""
    with subprocess.Popen([sys.executable, "-c", COMPILER], text=True, stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, preexec_fn=end_with_parent) as compiler:
        compiler.stdin.write(SLOW.format(seconds))
        if seconds:
            compiler.stdin.close()
        else:
            compiler.stdin.flush()
        compiler.stdout.readline()  # hangs: worker_is_stuck_in_a_compile


@program
def worker_is_stuck_in_a_compile(args):
    """Rank 1 compiles a new shape in a child that waits for the end of its input."""
    def execute(step):
        if step == 1 and args.rank == 1:
            compile_shape(args.seconds if args.fixed else 0)

    run_engine(args, execute)


@program
def scheduler_decides_alone(args):
    """The scheduler of rank 0 takes a step for known, broadcasts nothing, and waits for all answers."""
    run_engine(args, lambda step: compile_kernels(0.2), alone_at=-1 if args.fixed else 4, pause=8)


@program
def reader_is_a_message_ahead(args):
    """The reader of rank 1 starts at the second message: it waits for that one, and the scheduler for rank 1."""
    ahead = args.rank == 1 and not args.fixed
    run_engine(args, lambda step: compile_kernels(0.2), pause=5, first=1 if ahead else 0)


def send_tokens(detokenizer, step):
    detokenizer.stdin.write(bytes(1 << 15))  # hangs: queue_is_full
    detokenizer.stdin.flush()


SLEEPER = "import sys, time\nwhile sys.stdin.buffer.read(1 << 15): time.sleep(float(sys.argv[1]))"


@program
def queue_is_full(args):
    """The child of rank 2 takes no more tokens, so rank 2 reads no steps, and the scheduler's queue is full."""
    number, pause = rounds(args, 1)
    if args.rank == 0:
        start_worker(broadcast_all, args.ranks, max(number, 4 * SLOTS), pause)
    wait_for_file("engine")
    detokenizer = subprocess.Popen([sys.executable, "-c", SLEEPER, str(pause if args.fixed else 3600)],
                                   stdin=subprocess.PIPE, preexec_fn=end_with_parent)
    execute = (lambda step: send_tokens(detokenizer, step)) if args.rank == 2 else lambda step: compile_kernels(0.2)
    with open(os.devnull, "wb") as answers:
        run_worker(args.rank, BroadcastQueue("broadcast", args.ranks), answers, execute)
    detokenizer.kill()


@program
def idle_engine(args):
    """Healthy: two requests in all that time."""
    run_engine(args, lambda step: compile_kernels(0.2), pause=args.seconds / 2)


if __name__ == "__main__":
    main()
