# SPDX-License-Identifier: Apache-2.0
"""Hangs of a rank in its own threads and coroutines. The others wait for that rank."""

import asyncio
import queue
import threading
import time

from common import Hub, compile_kernels, main, program, publish, rounds, wait_for_file


class Trainer:
    """A model and its log have a lock each. A thread saves both, now and then."""

    def __init__(self):
        self.model, self.log = threading.Lock(), threading.Lock()

    def train(self, pause):
        with self.model:
            time.sleep(pause)
            with self.log:  # hangs: two_locks_in_two_orders
                compile_kernels(pause / 4)

    def save(self, first, second, pause):
        with first:
            time.sleep(pause)
            with second:
                compile_kernels(pause / 4)


@program
def two_locks_in_two_orders(args):
    """The saving thread of rank 1 takes the log and then the model; the main thread, the other way round."""
    hub = Hub(args)
    number, pause = rounds(args, 3)
    trainer = Trainer()
    for step in range(number):
        locks = [trainer.model, trainer.log]
        if step == 3 and args.rank == 1 and not args.fixed:
            locks.reverse()
        saver = threading.Thread(target=trainer.save, args=(*locks, pause), name="saver")
        saver.start()
        trainer.train(pause)
        saver.join()
        hub.meet()


def prefetch(batches, number, pause, bad):
    for index in range(number):
        time.sleep(pause)
        batches.put([float(text) for text in ("1", "nan" if index != bad else "12,5")])


@program
def prefetching_thread_has_ended(args):
    """An exception ended the thread of rank 2 that fills the queue of batches."""
    hub = Hub(args)
    number, pause = rounds(args, 2)
    batches = queue.Queue(2)
    bad = 3 if args.rank == 2 and not args.fixed else -1
    threading.Thread(target=prefetch, args=(batches, number, pause, bad), name="prefetch", daemon=True).start()
    for _ in range(number):
        batches.get()  # hangs: prefetching_thread_has_ended
        hub.meet()


class Meeting:
    """Answers all ranks once so many have come."""

    def __init__(self, ranks, broken_step):
        self.ranks, self.broken_step, self.arrived, self.all_here = ranks, broken_step, 0, None

    async def serve(self, reader, writer):
        while line := await reader.readline():
            if self.all_here is None:
                self.all_here = asyncio.get_running_loop().create_future()
            waiting = self.all_here
            self.arrived += int(line) != self.broken_step
            if self.arrived == self.ranks:
                self.arrived, self.all_here = 0, None
                waiting.set_result("go")
            writer.write((await waiting).encode() + b"\n")  # hangs: future_is_never_set


async def take_part(rank, ranks, number, pause, broken_step):
    if rank == 0:
        server = await asyncio.start_server(Meeting(ranks, broken_step).serve, "127.0.0.1", 0)
        publish("meeting", str(server.sockets[0].getsockname()[1]))
    reader, writer = await asyncio.open_connection("127.0.0.1", int(wait_for_file("meeting")))
    for step in range(number):
        await asyncio.sleep(pause)
        writer.write(b"%d\n" % step)
        await reader.readline()
    writer.close()
    await asyncio.sleep(1 if rank == 0 else 0.1)


@program
def future_is_never_set(args):
    """Rank 0 does not count the ranks of one step, and never sets the future that all wait for."""
    broken_step = -1 if args.fixed else 4
    number, pause = rounds(args, 4)
    asyncio.run(take_part(args.rank, args.ranks, number, pause, broken_step))  # hangs: future_is_never_set


async def answer_once(asked, answer):
    await asked
    answer.set_result("ready")


async def run_step(pause, crossed):
    """Two coroutines, of which one waits for the other; crossed: each waits for the other."""
    loop = asyncio.get_running_loop()
    weights, graph, done = (loop.create_future() for _ in range(3))
    if not crossed:
        graph.set_result("ready")
    await asyncio.gather(answer_once(graph, weights), answer_once(weights, graph if crossed else done))
    await asyncio.sleep(pause)


async def run_engine(hub, number, pause, broken_step):
    for step in range(number):
        await run_step(pause, step == broken_step)
        await asyncio.to_thread(hub.meet)


@program
def coroutines_await_each_other(args):
    """Two coroutines of rank 0 wait for each other's future, so its event loop has nothing to do."""
    hub = Hub(args)
    number, pause = rounds(args, 4)
    if args.rank == 0:
        broken_step = -1 if args.fixed else 4
        asyncio.run(run_engine(hub, number, pause, broken_step))  # hangs: coroutines_await_each_other
        return
    for _ in range(number):
        hub.meet()


def write_metrics(metrics):
    while (line := metrics.get()) is not None:  # hangs: exit_waits_for_a_thread
        with open("metrics", "a") as file:
            file.write(line)


CONNECTIONS = []  # stay open after the program


@program
def exit_waits_for_a_thread(args):
    """An exception has ended the program of rank 1. Python waits for its thread, which nobody tells to end."""
    CONNECTIONS.append(hub := Hub(args))
    number, pause = rounds(args, 3)
    metrics = queue.Queue()
    threading.Thread(target=write_metrics, args=(metrics,), name="metrics").start()
    for step in range(number):
        compile_kernels(pause)
        samples = 0 if step == 4 and args.rank == 1 and not args.fixed else 8
        metrics.put(f"{args.rank} {step / samples}\n")
        hub.meet()
    metrics.put(None)


if __name__ == "__main__":
    main()
