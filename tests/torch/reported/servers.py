# SPDX-License-Identifier: Apache-2.0
"""Ranks that serve: the first one waits for requests of the outside, or one rank asks another."""

import asyncio
import contextlib
import http.server
import multiprocessing.connection
import os
import pathlib
import threading
import time
import urllib.request

import torch
import torch.distributed as dist
from common import WIDTH, main, program

STOP, GENERATE, IDLE = 0.0, 1.0, 2.0
HEARTBEAT_SECONDS = 2


def publish(args, port):
    """Tells clients where the server is."""
    unfinished = pathlib.Path(args.work, "port.new")
    unfinished.write_text(str(port))
    unfinished.rename(pathlib.Path(args.work, "port"))


def find_server(args):
    file = pathlib.Path(args.work, "port")
    while not file.exists():
        time.sleep(0.05)
    return f"http://127.0.0.1:{file.read_text()}"


def tell(order):
    """Rank 0 tells the others what is to be done."""
    dist.broadcast(torch.tensor([order]), 0)


def generate():
    for _ in range(3):
        dist.all_reduce(torch.ones(WIDTH))


def follow():
    """What all ranks but the first do."""
    order = torch.zeros(1)
    while True:
        dist.broadcast(order, 0)
        if order == STOP:
            return
        if order == GENERATE:
            generate()


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        if self.path == "/stop":
            tell(STOP)
            threading.Thread(target=self.server.shutdown).start()
        else:
            tell(GENERATE)
            generate()
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_):
        pass


class Server(http.server.HTTPServer):
    heartbeats = False
    next_heartbeat = 0.0

    def service_actions(self):
        if self.heartbeats and time.monotonic() > self.next_heartbeat:
            self.next_heartbeat = time.monotonic() + HEARTBEAT_SECONDS
            tell(IDLE)


@program
def idle_server(args):
    """Healthy: rank 0 serves, and nobody asks for a while. Fixed: it lets the others go round."""
    if args.rank > 0:
        follow()
        return
    with Server(("127.0.0.1", 0), Handler) as server:
        server.heartbeats = args.fixed
        publish(args, server.server_port)
        server.serve_forever()  # hangs: idle_server


async def answer(reader, writer, stopped):
    words = await reader.readline()
    if b"/stop" in words:
        tell(STOP)
        stopped.set()
    else:
        tell(GENERATE)
        generate()
    writer.write(b"HTTP/1.0 200 OK\r\n\r\n")
    await writer.drain()
    writer.close()


async def send_heartbeats():
    while True:
        await asyncio.sleep(HEARTBEAT_SECONDS)
        tell(IDLE)


async def serve(args):
    stopped = asyncio.Event()
    server = await asyncio.start_server(lambda *ends: answer(*ends, stopped), "127.0.0.1", 0)
    publish(args, server.sockets[0].getsockname()[1])
    beating = asyncio.create_task(send_heartbeats()) if args.fixed else None
    async with server:
        await stopped.wait()
    if beating is not None:
        beating.cancel()


@program
def idle_asyncio_server(args):
    """The same with asyncio."""
    if args.rank > 0:
        follow()
    else:
        asyncio.run(serve(args))  # hangs: idle_asyncio_server


class Engine(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.asked = self.path
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_):
        pass


def run_engine(args, weights):
    """One thread answers, and takes the weights when it is told that they come."""
    with http.server.HTTPServer(("127.0.0.1", 0), Engine) as server:
        publish(args, server.server_port)
        server.asked = ""
        while server.asked != "/stop":
            server.handle_request()
            if server.asked == "/begin_update":
                dist.broadcast(weights, 0)


def ask(engine, what):
    with urllib.request.urlopen(engine + what) as reply:  # hangs: checks_health
        return reply.status


def send_weights(args, engine, weights, checks):
    ask(engine, "/begin_update")
    if checks:
        ask(engine, "/health")
    dist.broadcast(weights, 0)


@program
def checks_health(args):
    """Rank 0 asks rank 3 whether it is well, while rank 3's only thread waits for the weights of rank 0."""
    trainers = dist.new_group([0, 1, 2])
    weights = torch.ones(WIDTH, WIDTH)
    if args.rank == 3:
        run_engine(args, weights)
        return
    engine = find_server(args)
    for update in range(4):
        for _ in range(6):
            dist.all_reduce(torch.ones(WIDTH), group=trainers)
        if args.rank == 0:
            send_weights(args, engine, weights, checks=update == 2 and not args.fixed)
        else:
            dist.broadcast(weights, 0)
    if args.rank == 0:
        ask(engine, "/stop")


def connect(address):
    while not os.path.exists(address):
        time.sleep(0.02)
    with contextlib.suppress(ConnectionRefusedError):  # it does not listen yet
        return multiprocessing.connection.Client(address, "AF_UNIX")
    time.sleep(0.1)
    return multiprocessing.connection.Client(address, "AF_UNIX")


def next_shard(connection):
    connection.send("next")
    return connection.recv()  # hangs: asks_for_one_more


def hand_out_shards(connections, step):
    for number, connection in enumerate(connections):
        connection.recv()
        connection.send(10 * step + number)


@program
def asks_for_one_more(args):
    """Rank 0 hands out one shard to each rank in a step. Rank 2's shard is empty, and it asks again."""
    address = f"{args.work}/shards"
    if args.rank == 0:
        with multiprocessing.connection.Listener(address, "AF_UNIX") as listener:
            connections = [listener.accept() for _ in range(args.ranks - 1)]
    else:
        connection = connect(address)
    for step in range(16):
        if args.rank == 0:
            hand_out_shards(connections, step)
        else:
            next_shard(connection)
            if step == 10 and args.rank == 2 and not args.fixed:
                next_shard(connection)
        dist.all_reduce(torch.ones(WIDTH))


if __name__ == "__main__":
    main()
