#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures the time that the preloaded library adds to the start of a program without NCCL.

    tests/bench/start_cost.py [BUILD] [STARTS]      build/release and 1000

Starts /bin/true with and without the library in turn, and prints microseconds
from the start to the end: the medians, and the median of the differences.
"""
import os
import pathlib
import statistics
import sys
import time


def start(environment):
    begin = time.perf_counter_ns()
    pid = os.posix_spawn("/bin/true", ["true"], environment)
    os.waitpid(pid, 0)
    return (time.perf_counter_ns() - begin) / 1000


def main():
    build = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "build/release")
    starts = int(sys.argv[2]) if len(sys.argv) > 2 else 1000
    library = (build / "lib" / "librollcall.so").resolve(strict=True)
    without = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    with_it = {**without, "LD_PRELOAD": str(library)}
    nothing = {**without, "LD_PRELOAD": "libdl.so.2"}  # a very small library
    times = {"without": [], "with": [], "with libdl.so.2": []}
    for _ in range(starts):
        times["without"].append(start(without))
        times["with"].append(start(with_it))
        times["with libdl.so.2"].append(start(nothing))
    for name, all_of_them in times.items():
        print(f"{name:18} {statistics.median(all_of_them):8.1f} us")
    for name in ("with", "with libdl.so.2"):
        added = statistics.median(a - b for a, b in zip(times[name], times["without"]))
        print(f"{name + ', added':22} {added:8.1f} us   median of {starts} pairs")


main()
