# SPDX-License-Identifier: Apache-2.0
"""Tests the backend of tests/torch/backend and the scripts that hang.

Run by tests/run, which puts the simulated NCCL on the library path. One
job of four ranks makes all checks of collectives.py; each is a test here.
"""

import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import types

import collectives
import pytest
from rollcall_torch_nccl import cuda

pytestmark = pytest.mark.long

HERE = pathlib.Path(__file__).parent
TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "4"]
UNEVEN_INPUTS = HERE / "uneven-inputs" / "train.py"
CHECKS_LIMIT_SECONDS = 90
JOB_LIMIT_SECONDS = 60
# The other ranks are at most a few steps of some milliseconds behind.
SILENCE_SECONDS = 4


def start(*command, **options):
    """The ranks share one output. Unbuffered, Python writes a line and its end one after the
    other, and another rank's line comes between."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    command = [*TORCHRUN, *map(str, command)]
    return subprocess.Popen(command, text=True, env=environment, **options)


def end(job, send=signal.SIGTERM):
    """torchrun passes SIGTERM on to its ranks and waits for them."""
    job.send_signal(send)
    job.wait(timeout=120)


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    folder = tmp_path_factory.mktemp("results")
    with open(folder / "output", "w+") as output:
        job = start(HERE / "collectives.py", folder, stdout=output, stderr=subprocess.STDOUT)
        try:
            job.wait(timeout=CHECKS_LIMIT_SECONDS)
        except subprocess.TimeoutExpired:
            end(job)
        output.seek(0)
        print(output.read())
    files = [folder / f"{rank}.json" for rank in range(collectives.RANKS)]
    ranks = [json.loads(file.read_text()) if file.exists() else {} for file in files]
    return {"exit_code": job.returncode, "ranks": ranks}


@pytest.mark.parametrize("name", [function.__name__ for function in collectives.CHECKS])
def test_backend(results, name):
    outcomes = [rank.get(name, "never ended") for rank in results["ranks"]]
    assert outcomes == ["ok"] * collectives.RANKS, "\n".join(outcomes)


def test_backend_ends_in_good_order(results):
    assert results["exit_code"] == 0


@pytest.mark.parametrize("error", [35, 100])
def test_a_runtime_without_a_device_says_what_to_type(monkeypatch, error):
    runtime = types.SimpleNamespace(cudaGetDeviceCount=lambda count: error)
    monkeypatch.setattr(cuda, "_runtime", lambda: runtime)
    with pytest.raises(RuntimeError, match=f"CUDA error {error}\n.*export LD_LIBRARY_PATH"):
        cuda.use_local_device()


def run_to_the_end(*arguments):
    job = start(UNEVEN_INPUTS, *arguments, stdout=subprocess.PIPE)
    try:
        output, _ = job.communicate(timeout=JOB_LIMIT_SECONDS)
    except subprocess.TimeoutExpired:
        end(job)
        raise
    assert job.returncode == 0
    return output


def test_uneven_inputs_fixed_ends_and_gives_the_same_loss_twice():
    outputs = [run_to_the_end("--fixed") for _ in range(2)]
    losses = [re.findall(r"final loss (\S+)", output) for output in outputs]
    assert len(losses[0]) == 1 and losses[0] == losses[1]
    assert outputs[0].count("done") == 4


def test_uneven_inputs_leaves_three_ranks_waiting():
    job = start(UNEVEN_INPUTS, stdout=subprocess.PIPE)
    try:
        lines = []
        for line in job.stdout:
            lines.append(line)
            if "done" in line:
                break
        assert lines[-1] == "rank 3: done\n", lines
        with pytest.raises(subprocess.TimeoutExpired):
            job.wait(timeout=SILENCE_SECONDS)
        assert waiting_ranks(job) >= 3
    finally:
        end(job)
    assert "done" not in job.stdout.read()


def waiting_ranks(job):
    children = pathlib.Path(f"/proc/{job.pid}/task/{job.pid}/children").read_text().split()
    states = [pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
              for pid in children]
    return sum(state == "S" for state in states)
