#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""rank_with_ras.py LIBRARY FOLDER: a rank that has mapped this NCCL, and waits. Rank 0 answers as NCCL's RAS does, at
NCCL_RAS_ADDR, with what FOLDER/answer has, and notes each query in FOLDER/asked. Prints its process number."""

import ctypes
import os
import socket
import sys
import threading


def serve(listener, folder):
    while True:
        client = listener.accept()[0]
        lines = client.makefile("r")
        for line in lines:
            with open(folder + "/asked", "a") as asked:
                asked.write(line)
            if line.startswith("CLIENT"):
                client.sendall(b"SERVER PROTOCOL 2\n")
            elif line.startswith("VERBOSE"):
                client.sendall(open(folder + "/answer", "rb").read())
                break
            else:
                client.sendall(b"OK\n")
        lines.close()
        client.close()


ctypes.CDLL(sys.argv[1])
if os.environ["RANK"] == "0":
    listener = socket.create_server(("127.0.0.1", int(os.environ["NCCL_RAS_ADDR"].split(":")[1])))
    threading.Thread(target=serve, args=(listener, sys.argv[2]), daemon=True).start()
a, b = socket.socketpair()
print(os.getpid(), flush=True)
a.recv(1)
