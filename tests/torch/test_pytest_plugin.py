# SPDX-License-Identifier: Apache-2.0
"""pytest --rollcall: a test whose ranks hang fails with the verdict, in the terminal and for CI."""

import json
import os
import pathlib
import subprocess
import sys
import time
import xml.etree.ElementTree

import pytest
from hang_cases import BUILD, HERE

pytestmark = pytest.mark.long

PYTHON = HERE.parent.parent / "python"
RANKS = f"""
import subprocess

def start(program, more=()):
    return subprocess.run(["{BUILD}/tests/ranks", "-n", "3", *more, "--", "{BUILD}/tests/" + program])
"""
HANGS = RANKS + """
def test_hangs():
    assert start("one_rank_stops_calling", ["--keep-going"]).returncode == 0
"""
ENDS_WELL = RANKS + """
def test_ends_well():
    assert start("healthy_mix").returncode == 0
"""
ONE_LEAVES = """
import os, sys, time
import torch
import torch.distributed as dist

def work(rank, port):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), RANK=str(rank), WORLD_SIZE="2")
    train(rank)

def train(rank):
    dist.init_process_group("nccl_cpu")
    for step in range(10):
        dist.all_reduce(torch.ones(4))
    if rank == 1:
        validate()
    dist.all_reduce(torch.ones(4))

def validate():
    time.sleep(600)
"""
SPAWNS = ONE_LEAVES + """
import socket
import torch.multiprocessing

def test_spawns():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    torch.multiprocessing.spawn(work, (port,), nprocs=2)
"""
LAUNCHES = ONE_LEAVES + """
import subprocess

def test_launches():
    done = subprocess.run([sys.executable, "-m", "torch.distributed.run", "--standalone",
                           "--nproc-per-node", "2", "--max-restarts", "1", __file__])
    assert done.returncode == 0

if __name__ == "__main__":
    train(int(os.environ["RANK"]))
"""


class Session:
    """A pytest of its own, as a person or CI starts it."""

    def __init__(self, folder, text, *flags, hang_after="2s", env=None):
        (folder / "test_it.py").write_text(text)
        self.folder = folder
        environment = dict(os.environ, PYTHONPATH=str(PYTHON), PYTHONDONTWRITEBYTECODE="1",
                           PATH=f"{BUILD}/bin:{os.environ['PATH']}")
        environment.update(env or {})
        environment.pop("PYTEST_ADDOPTS", None)  # of the outer pytest: a second try has an incident of its own
        begin = time.monotonic()
        self.done = subprocess.run(
            [sys.executable, "-m", "pytest", "-p", "rollcall.pytest_plugin", "-p", "no:cacheprovider",
             "--rollcall", f"--rollcall-hang-after={hang_after}", "--junitxml=junit.xml",
             f"--rootdir={folder}", "test_it.py", *flags],
            cwd=folder, env=environment, capture_output=True, text=True, timeout=120, check=False)
        self.seconds = time.monotonic() - begin

    @property
    def output(self):
        return self.done.stdout + self.done.stderr

    def junit(self):
        """The outcome of each test for CI: its failure's text, or ""."""
        cases = xml.etree.ElementTree.parse(self.folder / "junit.xml").iter("testcase")
        return {case.get("name"): "".join(f"{part.get('message')}\n{part.text}" for part in case
                                          if part.tag in ("failure", "error")) for case in cases}

    def incidents(self):
        return [json.loads(file.read_text())
                for file in sorted((self.folder / "rollcall-reports").glob("*/incident.json"))]

    def processes(self):
        """The processes that the session has left behind."""
        until = time.monotonic() + 5  # helpers of multiprocessing see a little later that it ended
        while (found := self._living()) and time.monotonic() < until:
            time.sleep(0.1)
        return found

    def _living(self):
        found = []
        for entry in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                if entry.joinpath("cwd").readlink() == self.folder:
                    found.append((entry.name, entry.joinpath("cmdline").read_bytes()))
            except OSError:
                continue
        return found


def test_a_test_that_hangs_fails_with_the_verdict_and_the_next_one_runs(tmp_path):
    session = Session(tmp_path, HANGS + ENDS_WELL)
    assert session.done.returncode == 1, session.output
    assert "1 failed, 1 passed" in session.output
    incident, = session.incidents()
    verdict = incident["verdicts"][0]
    assert verdict["cause"] == "missing_rank" and [c["rank"] for c in verdict["culprits"]] == [2]
    junit = session.junit()
    assert junit["test_ends_well"] == ""
    said = verdict["summary"].rpartition(";")[0]  # the time of the wait grows until the report
    for words in (said, f"[{verdict['advice'][0]['id']}]", "/report.txt"):
        assert words in junit["test_hangs"]
        assert words in session.output
    assert f"FAILED test_it.py::test_hangs - {said[:20]}" in session.output
    assert session.processes() == []


@pytest.mark.parametrize("text, place", [(SPAWNS, "test_spawns"), (LAUNCHES, "test_launches")])
def test_ranks_of_torch_that_hang_end_with_their_test(text, place, tmp_path):
    session = Session(tmp_path, text)
    assert session.done.returncode == 1, session.output
    failure = session.junit()[place]
    assert "rank 1" in failure and "validate" in failure, session.output
    assert len(session.incidents()) == 1
    assert session.processes() == []


def test_a_test_that_waits_for_its_ranks_by_other_means_is_woken(tmp_path):
    session = Session(tmp_path, RANKS + """
import queue, threading

def test_waits():
    threading.Thread(target=start, args=("one_rank_stops_calling", ["--keep-going"])).start()
    queue.Queue().get()
""")
    assert session.done.returncode == 1, session.output
    assert "rank 2" in session.junit()["test_waits"]


def test_with_xdist_the_hang_of_one_worker_leaves_the_others_alone(tmp_path):
    session = Session(tmp_path, HANGS + ENDS_WELL + """
def test_waits_beside_it():
    import time
    begin = time.monotonic()
    while time.monotonic() < begin + 3:
        assert start("healthy_mix").returncode == 0
""", "-n", "2")
    assert "1 failed, 2 passed" in session.output
    assert "rank 2" in session.junit()["test_hangs"]


def test_a_hang_is_found_again_when_the_test_runs_again(tmp_path):
    session = Session(tmp_path, HANGS, "--reruns", "1")
    assert session.done.returncode == 1, session.output
    assert "1 failed, 1 rerun" in session.output
    assert len(session.incidents()) == 2


def test_a_test_that_handles_the_death_of_a_rank_passes(tmp_path):
    session = Session(tmp_path, RANKS + """
def test_one_dies():
    assert start("one_rank_dies", ["--grace", "1"]).returncode != 0
""", hang_after="20s")
    assert session.done.returncode == 0, session.output


def test_tests_without_ranks_share_one_watcher_and_find_their_environment_as_it_was(tmp_path):
    session = Session(tmp_path, """
import os, subprocess
folders = set()

def test_a():
    folders.add(os.environ["ROLLCALL_DIR"])
    assert subprocess.run(["true"]).returncode == 0

def test_b():
    folders.add(os.environ["ROLLCALL_DIR"])
    assert len(folders) == 1

def teardown_module():
    assert "librollcall" in os.environ["LD_PRELOAD"]
""")
    assert session.done.returncode == 0, session.output
    assert session.junit() == {"test_a": "", "test_b": ""}


@pytest.mark.parametrize("flags, code, words", [
    (["--rollcall-missing=fail"], 4, "found no program `rollcall`"),
    (["--rollcall-missing=warn"], 0, "--rollcall has no effect: found no program `rollcall`"),
])
def test_without_the_program_it_fails_or_warns_as_asked(flags, code, words, tmp_path):
    copy = tmp_path / "elsewhere" / "rollcall"
    copy.mkdir(parents=True)
    for file in (PYTHON / "rollcall").glob("*.py"):
        (copy / file.name).write_bytes(file.read_bytes())
    session = Session(tmp_path, "def test_it(): pass\n", *flags,
                      env={"PYTHONPATH": str(copy.parent), "PATH": "/usr/bin:/bin"})
    assert session.done.returncode == code, session.output
    assert words in session.output


def test_a_time_that_is_none_is_refused(tmp_path):
    session = Session(tmp_path, "def test_it(): pass\n", hang_after="soon")
    assert session.done.returncode == 4, session.output
    assert "--rollcall-hang-after=soon" in session.output and "soon is not a time" in session.output
