# SPDX-License-Identifier: Apache-2.0
"""A rank that meets the others by a socket; one whose number is an argument waits for a lock instead."""

import os
import socket
import sys
import threading


def validate():
    lock = threading.Lock()
    while True:
        lock.acquire()


def meet():
    one, _ = socket.socketpair()
    one.recv(1)


print("stands here", flush=True)
validate() if os.environ["RANK"] in sys.argv[1:] else meet()
