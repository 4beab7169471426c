# SPDX-License-Identifier: Apache-2.0
"""Builds and runs jobs of each MPI, for the tests."""
import json
import os
import pathlib
import shutil
import subprocess

import pytest
from conftest import ROLLCALL, read_until

VICTIM_SOURCES = pathlib.Path(__file__).with_name("victims")
ENVIRONMENT = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
               "OMPI_MCA_btl_vader_single_copy_mechanism": "none"}
MPIRUN_FLAGS = {"openmpi": ["--oversubscribe"], "mpich": []}


def mpirun(name, *command):
    return [f"mpirun.{name}", *MPIRUN_FLAGS[name], "-n", "4", *command]


def build_mpi_job(name, source, tmp_path_factory):
    """The command that starts 4 ranks of the C program, built with this MPI."""
    if shutil.which(f"mpicc.{name}") is None:
        pytest.skip(f"mpicc.{name} is not installed (Debian: {name} and its -dev package)")
    program = tmp_path_factory.mktemp(name) / source
    subprocess.run([f"mpicc.{name}", "-g", "-O1", "-w", "-o", program, VICTIM_SOURCES / f"{source}.c"],
                   check=True)
    return mpirun(name, program)


def run_mpi_job(command, arguments, tmp_path, flags=("--on-hang=abort",), until=None, environment=None,
                hang_after="2s"):
    """(exit code, output, the verdicts of each incident). `until`: ends the job once stderr holds this."""
    reports = tmp_path / "reports"
    job = subprocess.Popen(
        [ROLLCALL, "run", f"--hang-after={hang_after}", *flags, f"--report-dir={reports}", "--", *command, *arguments],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**ENVIRONMENT, **(environment or {})})
    try:
        begin = read_until(job, until) if until else ""
        if until:
            job.terminate()
        out, err = job.communicate(timeout=120)
    finally:
        job.terminate()  # a job that goes on would take processors and /dev/shm from all others
    print(out, begin, err)
    incidents = [json.loads(file.read_text()) for file in reports.glob("*/incident.json")]
    return job.returncode, out + begin + err, [i["verdicts"] for i in incidents]


def said_of_the_job(output):
    """Lines of Rollcall, without those about a host that is too busy to be read."""
    return [line for line in output.splitlines()
            if "rollcall" in line and "reads of its /proc files time out" not in line]


def culprits(verdict):
    return [culprit["rank"] for culprit in verdict["culprits"]]
