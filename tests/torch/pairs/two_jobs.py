# SPDX-License-Identifier: Apache-2.0
"""A trainer and a generation engine: two jobs of two ranks each, which share a gloo group or a store.

    two_jobs.py PROGRAM [--fixed]                            starts the four ranks; the exit code is 0 if all end with 0
    two_jobs.py PROGRAM [--fixed] JOB RANK OWN_PORT PORT     one rank of the job "trainer" or "engine"

The ports are those of the job's own store, and of the store that both share. Each job has a group of its own, as
torchrun would make it, and then joins the shared one as the ranks 0-1 (trainer) and 2-3 (engine). A line with
"# hangs: PROGRAM" is where the culprit of that program stands.
"""

import datetime
import os
import queue
import signal
import socket
import subprocess
import sys
import threading
import time

import torch
import torch.distributed as dist

RANKS = 2  # of each job
STEPS = 6
BREAKS_AT = 3
WIDTH = 16
LONG = datetime.timedelta(seconds=300)
PROGRAMS = {}


def program(function):
    PROGRAMS[function.__name__] = function
    return function


class Job:
    def __init__(self, name, rank, own_port, shared_port, fixed):
        self.name, self.rank, self.fixed = name, rank, fixed
        self.is_trainer = name == "trainer"
        dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{own_port}", rank=rank, world_size=RANKS,
                                timeout=LONG)
        is_master = self.is_trainer and rank == 0
        self.store = dist.TCPStore("127.0.0.1", shared_port, is_master=is_master, timeout=LONG,
                                   wait_for_workers=False)

    def join_both(self):
        """The group of both jobs, as weight synchronisation of reinforcement learning makes it."""
        rank = self.rank if self.is_trainer else RANKS + self.rank
        return dist.ProcessGroupGloo(dist.PrefixStore("weights", self.store), rank, 2 * RANKS, LONG)

    def breaks(self, step):
        return not self.is_trainer and self.rank == 1 and step == BREAKS_AT and not self.fixed


def load(step):
    raise ValueError(f"no weight named lm_head in step {step}")


def broadcast(group, value):
    group.broadcast([torch.full((WIDTH,), float(value))], dist.BroadcastOptions()).wait()


def keep(stopped):
    """A thread of a server, which lives as long as its process."""
    stopped.wait()


@program
def engine_raises(job):
    """Rank 1 of the engine cannot load the weights. A thread of its server keeps its process alive."""
    group = job.join_both()
    stopped = threading.Event()
    threading.Thread(target=keep, args=(stopped,)).start()
    for step in range(STEPS):
        dist.all_reduce(torch.ones(WIDTH))
        if job.breaks(step):
            load(step)
        broadcast(group, step)
    stopped.set()


@program
def engine_waits(job):
    """Rank 1 of the engine waits for a request before it takes the weights."""
    group = job.join_both()
    for step in range(STEPS):
        if job.breaks(step):
            queue.Queue().get()  # hangs: engine_waits
        broadcast(group, step)


@program
def trainer_waits(job):
    """Rank 1 of the trainer waits for data, in its own group the other one for it, and the engine for both."""
    group = job.join_both()
    for step in range(STEPS):
        if job.is_trainer:
            if job.rank == 1 and step == BREAKS_AT and not job.fixed:
                queue.Queue().get()  # hangs: trainer_waits
            dist.all_reduce(torch.ones(WIDTH))
        broadcast(group, step)


@program
def engine_dies_before_its_key(job):
    """Both jobs talk through keys of a store only. The engine crashes before it says that it is ready."""
    for step in range(STEPS):
        if job.is_trainer:
            job.store.wait([f"ready/{step}"], LONG)
        elif job.rank == 1:
            time.sleep(0.3)
            if job.breaks(step):
                load(step)
            job.store.set(f"ready/{step}", "yes")


def free_ports(count):
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def launch(command):
    """All ranks of both jobs. The environment names the rendezvous of both, as one launcher of two jobs gives it."""
    shared, *own = free_ports(3)
    ranks = []
    for job, port in zip(("trainer", "engine"), own):
        for rank in range(RANKS):
            environment = dict(os.environ, ROLLCALL_JOB=job, RANK=str(rank), LOCAL_RANK=str(rank),
                               WORLD_SIZE=str(RANKS), MASTER_ADDR="127.0.0.1", MASTER_PORT=str(shared),
                               OMP_NUM_THREADS="1")
            ranks.append(subprocess.Popen([sys.executable, *command, job, str(rank), str(port), str(shared)],
                                          env=environment))

    def end(*_):
        for rank in ranks:
            rank.kill()

    signal.signal(signal.SIGTERM, end)
    while None in [rank.poll() for rank in ranks]:  # of all, so that none remains as a zombie
        time.sleep(0.1)
    return max(abs(rank.returncode) for rank in ranks)


def main():
    name, *rest = sys.argv[1:]
    fixed = "--fixed" in rest
    rest = [word for word in rest if word != "--fixed"]
    if not rest:
        sys.exit(launch(sys.argv))
    job, rank, own_port, port = rest
    PROGRAMS[name](Job(job, int(rank), int(own_port), int(port), fixed))
    print(f"{job} rank {rank} done", flush=True)
    time.sleep(0.5)  # until the others have read the last keys


if __name__ == "__main__":
    main()
