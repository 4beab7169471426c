# SPDX-License-Identifier: Apache-2.0
"""Hangs at queues of a manager of multiprocessing, which serves all ranks."""

import queue
import threading
import time
from multiprocessing.managers import BaseManager

from common import answer_that_never_comes, main, program, publish, rounds, wait_for_file

KEY = b"not a secret"


class Tasks(BaseManager):
    pass


def serve(args, size=0):
    """Rank 0 serves a queue of tasks, one of results and one for each rank from a thread: what returns one by name."""
    if args.rank == 0:
        names = ["tasks", "results", *map(str, range(args.ranks))]
        queues = {name: queue.Queue(size if name == "tasks" else 0) for name in names}
        Tasks.register("queue", callable=lambda name: queues[name])
        server = Tasks(("127.0.0.1", 0), KEY).get_server()
        threading.Thread(target=server.serve_forever, name="manager", daemon=True).start()
        publish("manager", str(server.address[1]))
        return queues.get
    Tasks.register("queue")
    manager = Tasks(("127.0.0.1", int(wait_for_file("manager"))), KEY)
    manager.connect()
    return manager.queue


def read_shard(step, stuck):
    if stuck:
        answer_that_never_comes().get()  # hangs: producer_stops
    return f"shard {step}"


@program
def producer_stops(args):
    """Rank 1 waits before it puts the next task into the queues from which the others get theirs."""
    find = serve(args)
    results = find("results")
    number, pause = rounds(args, 3)
    takers = [find(str(rank)) for rank in range(args.ranks) if rank != 1]
    for step in range(number):
        if args.rank == 1:
            shard = read_shard(step, stuck=step == 4 and not args.fixed)
            time.sleep(pause)
            for taker in takers:
                taker.put(shard)
            for _ in takers:
                results.get()
        else:
            results.put(len(find(str(args.rank)).get()))
    leave(args)


@program
def nobody_takes_results(args):
    """All ranks put their tasks into a full queue. The rank that should empty it puts one, too."""
    find = serve(args, size=4)
    tasks, results = find("tasks"), find(str(args.rank))
    number, pause = rounds(args, 3)
    for step in range(number):
        for _ in range(1 if args.fixed or step < 4 else 3):
            tasks.put((args.rank, step))  # hangs: nobody_takes_results
        if args.rank == 0:
            taken = [tasks.get() for _ in range(args.ranks)]
            time.sleep(pause)
            for rank, _ in taken:  # of one queue, a quick rank would take the result of another one
                find(str(rank)).put(step)
        results.get()
    leave(args)


def leave(args):
    """Rank 0 serves until all others have gone."""
    publish(f"left-{args.rank}")
    if args.rank == 0:
        for rank in range(args.ranks):
            wait_for_file(f"left-{rank}")
        time.sleep(0.5)


if __name__ == "__main__":
    main()
