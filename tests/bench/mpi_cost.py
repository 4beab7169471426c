#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints what MPI's messages cost without the library and with it: tests/bench/mpi_cost.py [BUILD]."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
BUILD = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else HERE.parents[1] / "build" / "release").resolve()
ENVIRONMENT = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


def measure(name, scratch):
    program = pathlib.Path(scratch) / name
    subprocess.run([f"mpicc.{name}", "-O2", "-w", "-o", program, HERE / "mpi_loop.c"], check=True)
    for library in ("", str(BUILD / "lib" / "librollcall.so")):
        with tempfile.TemporaryDirectory() as folder:
            command = ["env", f"LD_PRELOAD={library}", f"ROLLCALL_DIR={folder}", str(program)]
            run = subprocess.run([f"mpirun.{name}", "-n", "1", *command], check=True, env=ENVIRONMENT,
                                 capture_output=True, text=True)
        print(f"{name}, {'with' if library else 'without'} the library: {run.stdout.strip()}")


with tempfile.TemporaryDirectory() as scratch:
    for mpi in ("openmpi", "mpich"):
        if shutil.which(f"mpicc.{mpi}"):
            measure(mpi, scratch)
