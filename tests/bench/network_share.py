#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Computes which share of a 1 MiB AllReduce over sockets the states of its transfers cost.

    tests/bench/network_share.py [BUILD] [ROUNDS]

No GPU takes part. The cost is the time of the events of a step (call_overhead) times the steps. The time
is the least that the call can take: two processes that exchange its data by TCP over loopback. With two
ranks each sends half of the data twice, and receives as much. Copies to and from the GPU, kernels and a
real network only add to the time, so the real share is smaller.

Steps: NCCL's protocol for small messages (LL) has the shortest ones, 32 KiB of data in 64 KiB (8 bytes of
each of the NCCL_LL_LINES_PER_THREAD * NCCL_LL_MAX_NTHREADS lines of 16); the simple one has up to 512 KiB.
"""
import pathlib
import re
import socket
import statistics
import subprocess
import sys
import threading
import time
from multiprocessing import Process

HERE = pathlib.Path(__file__).resolve().parent
BUILD = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else HERE.parents[1] / "build" / "release").resolve()
ROUNDS = sys.argv[2] if len(sys.argv) > 2 else "3"
HALF = 512 * 1024
PROTOCOLS = [("LL", 32 * 1024, 2), ("simple", 512 * 1024, 1)]  # data of a step; bytes sent for each of them
CALLS = 300
ROW = "5 events of a step over the network"


def step_ns():
    """Nanoseconds that the library adds to the events of a step, p50."""
    lines = subprocess.run([BUILD / "bench" / "call_overhead", ROUNDS], check=True, capture_output=True,
                           text=True).stdout.splitlines()
    first = next(index for index, line in enumerate(lines) if line.startswith(ROW))
    return float(re.findall(r"[-\d.]+", lines[first + 2].replace("added", ""))[0])


def exchange(end, out, into):
    """Sends half of the data and receives the other's, at the same time."""
    sender = threading.Thread(target=end.sendall, args=(out,))
    sender.start()
    room = memoryview(into)
    while room:
        room = room[end.recv_into(room):]
    sender.join()


def reduce_all(end, size):
    out, into, times = bytes(size), bytearray(size), []
    for _ in range(CALLS):
        begin = time.perf_counter_ns()
        exchange(end, out, into)
        exchange(end, out, into)
        times.append(time.perf_counter_ns() - begin)
    return times


def call_ns(size):
    """The least and the median time of a call whose two halves have `size` bytes each."""
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    other = Process(target=lambda: reduce_all(socket.create_connection(("127.0.0.1", port)), size))
    other.start()
    end, _ = listener.accept()
    times = reduce_all(end, size)
    other.join()
    return min(times), statistics.median(times)


def main():
    step = step_ns()
    print(f"the events of a step: {step:.0f} ns")
    for name, data, factor in PROTOCOLS:
        steps = 2 * 2 * HALF // data  # sent and received
        least, median = call_ns(factor * HALF)
        print(f"{name}: {steps} steps, {steps * step / 1000:.2f} microseconds; the bytes take "
              f"{least / 1000:.0f} microseconds at least and {median / 1000:.0f} as a rule: "
              f"{100 * steps * step / least:.2f} % and {100 * steps * step / median:.2f} %")


if __name__ == "__main__":
    main()
