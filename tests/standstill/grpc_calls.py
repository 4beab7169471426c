# SPDX-License-Identifier: Apache-2.0
"""Hangs in gRPC calls between ranks. Needs the package grpcio."""

import concurrent.futures
import time

import grpc
from common import answer_that_never_comes, compile_kernels, main, program, publish, rounds, wait_for_file

METHOD = "/parameters.Server/Get"


def start_server(args, handle):
    """One thread serves, as `max_workers` says."""
    server = grpc.server(concurrent.futures.ThreadPoolExecutor(max_workers=1))
    handler = grpc.unary_unary_rpc_method_handler(handle)
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("parameters.Server", {"Get": handler}),))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    publish(f"grpc-{args.rank}", str(port))
    return server


def call(rank, message):
    """Opens a channel for each call, and waits without a time limit."""
    with grpc.insecure_channel(f"127.0.0.1:{wait_for_file(f'grpc-{rank}')}") as channel:
        return channel.unary_unary(METHOD)(message)  # hangs: servers_ask_each_other


@program
def servers_ask_each_other(args):
    """Ranks 0 and 1 serve with one thread each, and each handler asks the other rank. Rank 2 asks rank 0."""
    number, pause = rounds(args, 3)

    def handle(request, context):
        compile_kernels(pause / 2)
        step, hops = map(int, request.split())
        if hops and args.rank < 2:
            # Fixed: the handler of the other rank asks no further.
            return call(1 - args.rank, b"%d %d" % (step, hops - 1))
        return b"weights"

    server = start_server(args, handle)
    for step in range(number):
        circle = step == 4 and not args.fixed
        call(0 if args.rank == 2 else 1 - args.rank, b"%d %d" % (step, 3 if circle else 0))
    leave(args, server)


@program
def handler_never_returns(args):
    """The handler of rank 1 waits for a thread that has gone. The others wait for its answer."""
    number, pause = rounds(args, 3)

    def handle(request, context):
        if int(request) == 4 and not args.fixed:
            answer_that_never_comes().get()  # hangs: handler_never_returns
        time.sleep(pause / args.ranks)
        return b"weights"

    server = start_server(args, handle)
    for step in range(number):
        call(1, b"%d" % step)
    leave(args, server)


def leave(args, server):
    publish(f"left-{args.rank}")
    for rank in range(args.ranks):
        wait_for_file(f"left-{rank}")
    time.sleep(0.5)
    server.stop(None)


if __name__ == "__main__":
    main()
