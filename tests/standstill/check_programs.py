# SPDX-License-Identifier: Apache-2.0
"""Checks the programs themselves, without Rollcall: each hangs, and each twin lasts and ends well.

    PYTHONPATH=tests/support python tests/standstill/check_programs.py [--for SECONDS] [PROGRAM...]

Leaves out what needs a package that is not there.
"""

import argparse
import importlib.util
import re
import shutil
import subprocess
import sys
import tempfile
import time

from cases import CASES, LEFT_ALONE

HANG_SECONDS = 15
MODULES = {"": "sys", "pyzmq": "zmq", "grpcio": "grpc", "ray[default]": "ray", "jax": "jax", "mpi4py": "mpi4py"}


def can_run(row):
    packages = [MODULES[row.package]]
    if row.file.suffix == ".py" and re.search("^ *import torch", row.file.read_text(), re.M):
        packages.append("torch")
    return all(importlib.util.find_spec(package) for package in packages) and (
        row.starter != "mpirun" or shutil.which("mpirun"))


def run(row, limit, **how):
    """(exit code, None if it had to be ended; output; seconds)"""
    with tempfile.TemporaryDirectory() as work, tempfile.TemporaryDirectory() as folder:
        if row.is_c:
            subprocess.run(row.compile_command(folder), check=True)
        begin = time.monotonic()
        with open(f"{folder}/output", "w+") as output:
            job = subprocess.Popen(row.command(work, folder, **how), stdout=output, stderr=subprocess.STDOUT)
            try:
                code = job.wait(limit)
            except subprocess.TimeoutExpired:
                code = None
                job.terminate()
                job.wait()
            output.seek(0)
            said = output.read()
        row.remove_ipc(work)
    return code, said, time.monotonic() - begin


def faults(row, seconds):
    found = []
    if row.causes != ("",):
        code, output, _ = run(row, HANG_SECONDS)
        if code is not None:
            found.append(f"does not hang: {code}\n{output}")
    code, output, took = run(row, 3 * seconds + 30, fixed=True, seconds=seconds)
    if code != 0 or took < seconds:
        found.append(f"--fixed: {code} after {took:.1f} s\n{output}")
    return found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--for", dest="seconds", type=float, default=30)
    parser.add_argument("programs", nargs="*")
    args = parser.parse_args()
    failed = False
    for row in CASES + LEFT_ALONE:
        if args.programs and row.program not in args.programs:
            continue
        found = faults(row, args.seconds) if can_run(row) else [f"left out: no {row.package or 'torch'}"]
        failed = failed or any(not text.startswith("left out") for text in found)
        print(row.program, "; ".join(found) or "good", flush=True)
    sys.exit(failed)


if __name__ == "__main__":
    main()
