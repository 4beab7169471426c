# SPDX-License-Identifier: Apache-2.0
"""Sends and receives between neighbours, of which one is left out, or which all begin alike."""

import torch
import torch.distributed as dist
from common import WIDTH, main, program


def exchange(mine, theirs, peer, settled):
    ops = [dist.P2POp(dist.irecv, theirs, peer)]
    if not settled:
        ops.insert(0, dist.P2POp(dist.isend, mine, peer))
    for work in dist.batch_isend_irecv(ops):
        work.wait()  # hangs: settled_ranks_send_nothing


def neighbour(rank, ranks, step):
    """In turn the one on either side: even and odd ranks meet."""
    forward = (rank + step) % 2 == 0
    return (rank + (1 if forward else -1)) % ranks


@program
def settled_ranks_send_nothing(args):
    """Ranks 1 and 3 stop to send once their part is settled; their peers still wait for it."""
    mine, theirs = torch.ones(WIDTH), torch.zeros(WIDTH)
    for step in range(26):
        settled = step >= 20 and args.rank % 2 == 1 and not args.fixed
        exchange(mine, theirs, neighbour(args.rank, args.ranks, step), settled)


def exchange_borders(args, cells, frozen):
    ops = []
    for peer in (args.rank - 1, args.rank + 1):
        if 0 <= peer < args.ranks:
            ops.append(dist.P2POp(dist.isend, cells, peer))
            if not frozen:
                ops.append(dist.P2POp(dist.irecv, torch.empty_like(cells), peer))
    for work in dist.batch_isend_irecv(ops):
        work.wait()  # hangs: frozen_border_receives_nothing


@program
def frozen_border_receives_nothing(args):
    """The last rank freezes its border and stops to receive; it still sends."""
    cells = torch.ones(WIDTH)
    for step in range(24):
        frozen = step >= 16 and args.rank == args.ranks - 1 and not args.fixed
        exchange_borders(args, cells, frozen)


def send_around(args, data):
    dist.send(data, (args.rank + 1) % args.ranks)  # hangs: all_send_first


def receive_around(args, data):
    dist.recv(data, (args.rank - 1) % args.ranks)  # hangs: all_receive_first


@program
def all_send_first(args):
    """A ring in which all send first. torch makes the communicator of two ranks at their first send."""
    data = torch.ones(WIDTH)
    for _ in range(4):
        if args.fixed and args.rank % 2 == 1:
            receive_around(args, data)
            send_around(args, data)
        else:
            send_around(args, data)
            receive_around(args, data)


@program
def all_receive_first(args):
    """A ring in which nobody sends first."""
    data = torch.ones(WIDTH)
    for _ in range(4):
        if args.fixed and args.rank == 0:
            send_around(args, data)
            receive_around(args, data)
        else:
            receive_around(args, data)
            send_around(args, data)


if __name__ == "__main__":
    main()
