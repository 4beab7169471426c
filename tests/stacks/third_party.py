#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The parity of stacks as a table.

    tests/stacks/third_party.py [--build build/release] [--verbose] [PROGRAM...]

Prints a line a program: its threads, and how many of them have as many frames as the better of gdb
and eu-stack, more, or fewer. PROGRAM is a name in the table. Exit 1: a thread has fewer frames.
"""
import argparse
import pathlib
import sys
import tempfile

import parity
import programs


def measure(name, build, verbose):
    """Prints the line of a program, and returns the number of threads with fewer frames."""
    with tempfile.TemporaryDirectory() as scratch:
        try:
            program = programs.PROGRAMS[name](build, pathlib.Path(scratch))
        except programs.Missing as missing:
            print(f"| {name} | {missing} | | | | |", flush=True)
            return 0
        try:
            pids = program.pids()
            verdicts = parity.judge_all(build / "tests" / "stack_frames", pids)
        finally:
            program.end()
    kinds = [verdict.kind for verdict in verdicts]
    counts = [kinds.count(kind) for kind in ("equal", "more", "less")]
    print("|", " | ".join(map(str, [name, len(pids), len(kinds), *counts])), "|", flush=True)
    for verdict in verdicts:
        if verdict.kind == "less" or verbose:
            print(verdict.describe(), file=sys.stderr, flush=True)
    return kinds.count("less")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--build", type=pathlib.Path, default=programs.ROOT / "build" / "release")
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("programs", nargs="*", default=list(programs.PROGRAMS))
    options = parser.parse_args()
    print("| program | processes | threads | equal | more | less |\n|---|---|---|---|---|---|")
    less = [measure(name, options.build.resolve(), options.verbose) for name in options.programs]
    return 1 if sum(less) else 0


if __name__ == "__main__":
    sys.exit(main())
