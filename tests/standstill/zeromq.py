# SPDX-License-Identifier: Apache-2.0
"""Hangs in ZeroMQ between ranks. Needs the package pyzmq."""

import time

import zmq
from common import compile_kernels, main, program, publish, rounds, wait_for_file


def bind(context, kind, name):
    server = context.socket(kind)
    publish(name, str(server.bind_to_random_port("tcp://127.0.0.1")))
    return server


def connect(context, kind, name, wrong=0):
    client = context.socket(kind)
    client.connect(f"tcp://127.0.0.1:{int(wait_for_file(name)) + wrong}")
    return client


def answer_requests(router, clients, number, pause, lost):
    """Answers all clients in each round, but not the request that it takes for a repeated one."""
    for step in range(number):
        requests = [router.recv_multipart() for _ in range(clients)]  # hangs: answer_is_lost
        time.sleep(pause)
        for address, request in sorted(requests):
            if (step, address) != lost:
                router.send_multipart([address, request])


@program
def answer_is_lost(args):
    """Rank 0 drops a request of rank 2, which waits for the answer, while rank 0 waits for its next request."""
    context = zmq.Context()
    number, pause = rounds(args, 4)
    lost = () if args.fixed else (3, b"rank-2")
    if args.rank == 0:
        answer_requests(bind(context, zmq.ROUTER, "requests"), args.ranks - 1, number, pause, lost)
        time.sleep(0.5)
        return
    client = context.socket(zmq.DEALER)
    client.setsockopt(zmq.IDENTITY, b"rank-%d" % args.rank)
    client.connect(f"tcp://127.0.0.1:{wait_for_file('requests')}")
    for step in range(number):
        client.send(b"batch %d" % step)
        client.recv()  # hangs: answer_is_lost


@program
def worker_connects_elsewhere(args):
    """Rank 2 has connected to a port where nobody is. Rank 0 waits to send it work, rank 1 for its next work."""
    context = zmq.Context()
    number, pause = rounds(args, 3)
    if args.rank == 0:
        workers = [bind(context, zmq.PUSH, f"work-{rank}") for rank in range(1, args.ranks)]
        for step in range(number):
            for worker in workers:
                worker.send(b"step %d" % step)
            compile_kernels(pause)
        time.sleep(0.5)
        return
    wrong = 1 if args.rank == 2 and not args.fixed else 0
    work = connect(context, zmq.PULL, f"work-{args.rank}", wrong)
    for _ in range(number):
        work.recv()  # hangs: worker_connects_elsewhere


def serve_weights(server, requests):
    for _ in range(requests):
        server.recv()
        server.send(b"weights")


@program
def requests_cross(args):
    """Ranks 0 and 1 ask each other, and each would answer only after its own question. Rank 2 asks rank 0."""
    context = zmq.Context()
    number, pause = rounds(args, 3)
    server = bind(context, zmq.REP, f"peer-{args.rank}") if args.rank < 2 else None
    peer = connect(context, zmq.REQ, "peer-1" if args.rank == 0 else "peer-0")
    for step in range(number):
        compile_kernels(pause)
        answers_first = args.rank == 0 and (args.fixed or step < 4)
        if answers_first:
            serve_weights(server, args.ranks - 1)
        peer.send(b"step %d" % step)
        peer.recv()  # hangs: requests_cross
        if args.rank == 1:
            serve_weights(server, 1)
    time.sleep(0.5)


if __name__ == "__main__":
    main()
