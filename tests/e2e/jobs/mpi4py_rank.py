# SPDX-License-Identifier: Apache-2.0
"""A rank of an MPI job in Python: python3 mpi4py_rank.py WHAT. Rank 2 makes the mistake, unless WHAT is "healthy"."""
import sys
import time

from mpi4py import MPI

world = MPI.COMM_WORLD
rank, size = world.Get_rank(), world.Get_size()
what = sys.argv[1]


def forget():
    while True:
        time.sleep(1)


def ask_for_work():
    """Rank 0 hands out numbers to whoever asks, as pickled objects."""
    if rank == 0:
        for _ in range(2 * (size - 1)):
            world.send("work", dest=world.recv(source=MPI.ANY_SOURCE, tag=1), tag=2)
    else:
        for _ in range(2):
            world.send(rank, dest=0, tag=1)
            assert world.recv(source=0, tag=2) == "work"


for step in range(3):
    ask_for_work()
    assert world.allreduce(1) == size
    request = world.isend({"step": step}, dest=(rank + 1) % size, tag=3)
    assert world.recv(source=(rank - 1) % size, tag=3) == {"step": step}
    request.wait()
if rank == 2 and what != "healthy":
    forget()
if what == "polls" and rank == 1:
    request = world.irecv(source=2, tag=4)
    while not request.test()[0]:
        pass
elif what in ("object", "healthy") and rank == 1:
    assert world.recv(source=2, tag=4) == "object"
elif rank == 2:
    world.send("object", dest=1, tag=4)
world.allreduce(1)
