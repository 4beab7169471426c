#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures the cost of call sites: records with and without the line of Python, in one run.

    tests/bench/call_sites.py [build/release] [rounds]

The call is made below some frames of a library and then one of the program's own, as with PyTorch.
Prints the median over the rounds of the mean time of a call.
"""
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

DEPTH = 6  # frames of libraries between the call and the program


def measure():
    import ctypes
    loop = ctypes.CDLL("libcall_loop.so")
    loop.MakeCommunicator.restype = ctypes.c_void_p
    loop.NanosecondsPerCall.restype = ctypes.c_double
    loop.NanosecondsPerCall.argtypes = [ctypes.c_void_p, ctypes.c_int]
    library = {"loop": loop}
    source = "def below(comm, n, depth):\n" \
             "    if depth == 0: return loop.NanosecondsPerCall(comm, n)\n" \
             "    return below(comm, n, depth - 1)\n"
    exec(compile(source, "/x/site-packages/library.py", "exec"), library)
    comm = loop.MakeCommunicator()
    library["below"](comm, 100_000, DEPTH)
    print(library["below"](comm, 1_000_000, DEPTH))


def run(build, segments, sites):
    env = {**os.environ, "LD_PRELOAD": f"{build}/lib/librollcall.so", "ROLLCALL_MARKERS": "0",
           "LD_LIBRARY_PATH": f"{build}/bench", "ROLLCALL_CALL_SITES": sites,
           "ROLLCALL_DIR": segments}
    return float(subprocess.run([sys.executable, __file__, "--measure"], env=env, check=True,
                                capture_output=True, text=True).stdout)


def main():
    root = pathlib.Path(__file__).resolve().parents[2]
    build = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else root / "build" / "release").resolve()
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 7
    with tempfile.TemporaryDirectory(dir="/dev/shm") as segments:
        without, with_sites = zip(*[(run(build, segments, "0"), run(build, segments, "1"))
                                    for _ in range(rounds)])
    before, after = statistics.median(without), statistics.median(with_sites)
    print(f"a call, recorded:                      {before:6.1f} ns")
    print(f"a call, recorded with its line:        {after:6.1f} ns")
    print(f"the line, below {DEPTH} frames of libraries: {after - before:6.1f} ns")


if __name__ == "__main__":
    if sys.argv[1:] == ["--measure"]:
        measure()
    else:
        main()
