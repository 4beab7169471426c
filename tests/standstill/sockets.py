# SPDX-License-Identifier: Apache-2.0
"""Hangs in sockets between ranks, and between the ranks and a process that is none."""

import os
import selectors
import socket
import subprocess
import sys
import time

from common import end_with_parent, main, program, publish, rounds, save_checkpoint, wait_for_file

COORDINATOR = """
import os, socket, sys, threading, time
server = socket.create_server(("127.0.0.1", 0))
with open("coordinator.new", "w") as file: file.write(str(server.getsockname()[1]))
os.rename("coordinator.new", "coordinator")
ranks, rounds, pause = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
clients = [server.accept()[0] for _ in range(ranks)]
for _ in range(rounds):
    for client in clients: client.recv(64)
    time.sleep(pause)
    for client in clients: client.sendall(b"lease\\n")
if pause < 1:
    threading.Event().wait()
"""


def serve():
    server = socket.create_server(("127.0.0.1", 0))
    publish("port", str(server.getsockname()[1]))
    return server


def connect(name="port"):
    return socket.create_connection(("127.0.0.1", int(wait_for_file(name))))


def receive(connection, size):
    data = b""
    while len(data) < size:
        data += connection.recv(size - len(data))  # hangs: body_is_too_short
    return data


def send_gradient(connection, size, announced):
    connection.sendall(announced.to_bytes(4, "big") + bytes(size))
    connection.recv(2)  # hangs: body_is_too_short


@program
def body_is_too_short(args):
    """Rank 2 sends four bytes fewer than it announces: it waits for rank 0, and rank 0 for the four bytes."""
    number, pause = rounds(args, 3)
    if args.rank > 0:
        connection = connect()
        for step in range(number):
            short = step == 4 and args.rank == 2 and not args.fixed
            send_gradient(connection, size=996 if short else 1000, announced=1000)
        return
    server = serve()
    clients = [server.accept()[0] for _ in range(args.ranks - 1)]
    for _ in range(number):
        for client in clients:
            receive(client, int.from_bytes(receive(client, 4), "big"))
        time.sleep(pause)
        for client in clients:
            client.sendall(b"ok")


def greet_all(clients, expected):
    """Waits until so many clients have said hello."""
    selector = selectors.DefaultSelector()
    for client in clients:
        selector.register(client, selectors.EVENT_READ)
    while expected:
        for key, _ in selector.select():  # hangs: accepts_one_too_few
            selector.unregister(key.fileobj)
            key.fileobj.recv(5)
            expected -= 1


@program
def accepts_one_too_few(args):
    """Rank 0 accepts one rank fewer than it waits for. All others wait for its answer."""
    if args.rank > 0:
        connection = connect()
        connection.sendall(b"hello")
        connection.recv(2)
        return
    server = serve()
    clients = [server.accept()[0] for _ in range(args.ranks - (1 if args.fixed else 2))]
    greet_all(clients, args.ranks - 1)
    save_checkpoint(args.seconds)
    for client in clients:
        client.sendall(b"ok")


def ask_for_lease(connection, step):
    connection.sendall(b"lease %d\n" % step)
    return connection.recv(64)  # hangs: coordinator_stops_answering


@program
def coordinator_stops_answering(args):
    """All ranks ask a process that is no rank for a lease, and it answers no longer."""
    number, pause = rounds(args, 4)
    if args.rank == 0:
        command = [sys.executable, "-c", COORDINATOR, str(args.ranks), str(number), str(pause)]
        no_rank = {name: value for name, value in os.environ.items() if "RANK" not in name}
        subprocess.Popen(command, env=no_rank, start_new_session=True, preexec_fn=end_with_parent)
    connection = connect("coordinator")
    for step in range(number if args.fixed else number + 1):
        ask_for_lease(connection, step)


if __name__ == "__main__":
    main()
