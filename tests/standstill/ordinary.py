# SPDX-License-Identifier: Apache-2.0
"""Ordinary programs that wait for long and hang never. Each ends with 0 after --for SECONDS."""

import code
import http.server
import multiprocessing
import os
import pathlib
import selectors
import signal
import socket
import socketserver
import sqlite3
import subprocess
import sys
import time

from common import compile_kernels, end_with_parent, main, program, publish, start_worker, wait_for_file


def end_after(args):
    """Ends the process in time, wherever it waits."""
    def end(*_):
        print(f"rank {args.rank} done", flush=True)
        for child in multiprocessing.active_children():
            child.kill()
        os._exit(0)

    signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, args.seconds)


def listen(name):
    server = socket.create_server(("127.0.0.1", 0))
    publish(name, str(server.getsockname()[1]))
    return server


def ask_and_stay(name, questions):
    """A client that keeps its connection after its last question."""
    with socket.create_connection(("127.0.0.1", int(wait_for_file(name)))) as connection:
        for question in questions:
            connection.sendall(question)
            connection.recv(1 << 12)
        connection.recv(1)


@program
def notebook(args):
    """A kernel runs the cells that a browser sends. The person has gone to lunch."""
    kernel = code.InteractiveInterpreter()
    server = listen("kernel")
    start_worker(ask_and_stay, "kernel", [b"values = list(range(10))\n", b"total = sum(values)\n"])
    end_after(args)
    connection = server.accept()[0]
    while cell := connection.recv(1 << 12):
        kernel.runsource(cell.decode(), symbol="exec")
        connection.sendall(b"done")


@program
def http_server(args):
    """A server of files without requests."""
    end_after(args)
    http.server.ThreadingHTTPServer(("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler).serve_forever()


@program
def worker_pool(args):
    """Three workers without work. Their owner waits for tasks from a socket."""
    server = listen("tasks")
    with multiprocessing.Pool(3, end_with_parent) as pool:
        pool.map(abs, range(100))
        end_after(args)
        while True:
            connection = server.accept()[0]
            pool.map(abs, connection.recv(1 << 12))


@program
def pauses_in_each_step(args):
    """A training loop that rests for 20 s in each step, to cool down or to obey a quota."""
    import torch
    import torch.distributed as dist
    dist.init_process_group("gloo")
    for _ in range(int(args.seconds / 20) + 1):
        compile_kernels(0.5)
        dist.all_reduce(torch.ones(16))
        time.sleep(20)
    dist.destroy_process_group()


@program
def sleeps_between_polls(args):
    """Looks for a new checkpoint every 10 s, to evaluate it."""
    end_after(args)
    while not pathlib.Path("checkpoint.pt").exists():
        time.sleep(10)


@program
def follows_a_file(args):
    """Reads a log as it grows, as `tail -f` does. Nobody writes."""
    pathlib.Path("log").write_text("a line\n")
    end_after(args)
    with open("log") as log:
        while True:
            if not log.readline():
                time.sleep(1)


@program
def runs_each_minute(args):
    """A loop that starts a small command at each full minute."""
    end_after(args)
    while True:
        time.sleep(60 - time.time() % 60)
        subprocess.run(["true"], check=True)


class Questions(socketserver.StreamRequestHandler):
    def handle(self):
        for line in self.rfile:
            rows = sqlite3.connect("data.db").execute(line.decode()).fetchall()
            self.wfile.write(repr(rows).encode() + b"\n")


@program
def database(args):
    """A database server with a thread for each of two clients, which keep their connections."""
    sqlite3.connect("data.db").execute("create table if not exists trials (loss real)")
    server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Questions)
    server.daemon_threads = True
    publish("database", str(server.server_address[1]))
    for _ in range(2):
        start_worker(ask_and_stay, "database", [b"select count(*) from trials\n"])
    end_after(args)
    server.serve_forever()


@program
def debugger(args):
    """Stops a child at once, and waits for the person's next command at a socket."""
    server = listen("debugger")
    child = subprocess.Popen([sys.executable, "-c", "while True: pass"], preexec_fn=end_with_parent)
    child.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, child.pid, os.WSTOPPED | os.WNOWAIT)
    end_after(args)
    selector = selectors.DefaultSelector()
    selector.register(server, selectors.EVENT_READ)
    selector.select()


@program
def zeromq_router(args):
    """Rank 0 routes requests from outside to the other ranks, and none comes."""
    import zmq
    context = zmq.Context()
    end_after(args)
    if args.rank > 0:
        worker = context.socket(zmq.DEALER)
        worker.connect(f"tcp://127.0.0.1:{wait_for_file('workers')}")
        worker.send(b"ready")
        while True:
            worker.send(worker.recv())
    front, back = context.socket(zmq.ROUTER), context.socket(zmq.ROUTER)
    front.bind_to_random_port("tcp://127.0.0.1")
    publish("workers", str(back.bind_to_random_port("tcp://127.0.0.1")))
    workers = [back.recv_multipart()[0] for _ in range(args.ranks - 1)]
    poller = zmq.Poller()
    poller.register(front, zmq.POLLIN)
    while poller.poll():
        client, request = front.recv_multipart()
        back.send_multipart([workers[0], request])
        front.send_multipart([client, back.recv_multipart()[1]])


if __name__ == "__main__":
    main()
