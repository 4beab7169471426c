# SPDX-License-Identifier: Apache-2.0
"""Idle threads of an interpreter, with numpy's and torch's where they are installed."""
import select
import socket
import sys
import threading
import time

pool = []
try:
    import numpy
    numpy.dot(numpy.ones((300, 300)), numpy.ones((300, 300)))
except ImportError:
    pass
try:
    import torch
    torch.mm(torch.ones(300, 300), torch.ones(300, 300))
    torch.ones(3, requires_grad=True).sum().backward()
except ImportError:
    pass


def recurse(depth, wait):
    return wait() if depth == 0 else recurse(depth - 1, wait)


def epoll():
    poller = select.epoll()
    poller.poll()


lock = threading.Lock()
lock.acquire()
server = socket.create_server(("127.0.0.1", 0))
pair = socket.socketpair()
waits = [lock.acquire, threading.Event().wait, lambda: time.sleep(86400), server.accept, epoll,
         lambda: pair[0].recv(1), lambda: select.select([pair[0]], [], []),
         lambda: list(map(lambda _: lock.acquire(), [0])),
         lambda: sorted([2, 1], key=lambda _: lock.acquire())]
for wait in waits:
    threading.Thread(target=recurse, args=(10, wait), daemon=True).start()
time.sleep(0.5)
print("ready", flush=True)
sys.stdin.read(1)
