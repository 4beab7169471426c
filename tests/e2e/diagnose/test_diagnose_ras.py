# SPDX-License-Identifier: Apache-2.0
"""`rollcall diagnose` and NCCL's RAS, from the process that listens to the verdict. The ranks have mapped the simulated
NCCL, and one of them speaks to clients as RAS does, because the simulated one has none. With real NCCL:
tests/gpu/run_checks.py."""

import json
import os
import signal
import subprocess
import sys

import pytest
from conftest import BUILD, CLONE, ROLLCALL
from processes import free_port, wait_for

HANG, CANNOT_TELL = 3, 2

RANK = CLONE / "tests" / "support" / "rank_with_ras.py"


class Job:
    """Three ranks, of which rank 1 is stopped."""

    def __init__(self, folder, library=None, environment=None):
        self.folder, port = folder, free_port()
        self.ranks = []
        for rank in range(3):
            self.ranks.append(subprocess.Popen(
                [sys.executable, str(RANK), str(library or BUILD / "sim" / "libnccl.so.2"), str(folder)],
                stdout=subprocess.PIPE, text=True,
                env={**os.environ, "LD_LIBRARY_PATH": str(BUILD / "sim"), "RANK": str(rank), "WORLD_SIZE": "3",
                     "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port),
                     "NCCL_RAS_ADDR": f"localhost:{port}", **(environment or {})}))
            assert self.ranks[-1].stdout.readline().strip().isdigit()
        self.ranks[1].send_signal(signal.SIGSTOP)

    def answer(self, counts):
        """RAS says that each rank has launched so many AllReduces."""
        ranks = [{"rank": rank, "host": "10.0.0.1", "pid": process.pid, "cuda_dev": rank,
                  "collective_counts": {"AllReduce": count, "Broadcast": 1}}
                 for rank, (process, count) in enumerate(zip(self.ranks, counts))]
        (self.folder / "answer").write_text(json.dumps(
            {"nccl_version": "2.29.2", "communicators": [{"hash": "0xa91f", "size": 3, "ranks": ranks}]}))

    @property
    def asked(self):
        path = self.folder / "asked"
        return path.read_text().splitlines() if path.exists() else []

    def look(self, *flags, code=HANG):
        """The root cause."""
        done = subprocess.run([ROLLCALL, "diagnose", "--format=json", "--samples-apart=2s", *flags,
                               str(self.ranks[0].pid)], capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == code, done.stdout + done.stderr
        return json.loads(done.stdout)["verdicts"][0]

    def end(self):
        for process in self.ranks:
            process.kill()
            process.wait()


@pytest.fixture
def start(tmp_path):
    jobs = []

    def start_job(**options):
        jobs.append(Job(tmp_path, **options))
        return jobs[-1]

    yield start_job
    for job in jobs:
        job.end()


def test_counts_that_agree_are_evidence(start):
    job = start()
    job.answer([8812, 8811, 8812])
    verdict = job.look("--ras=always")
    assert [culprit["rank"] for culprit in verdict["culprits"]] == [1]
    assert verdict["certainty"] == "likely"
    evidence = "\n".join(verdict["evidence"])
    assert "NCCL's RAS blames the same" in evidence
    assert f"1 rank has launched 8811: rank 1 (process {job.ranks[1].pid} on " in evidence
    assert job.asked == ["CLIENT PROTOCOL 2", "TIMEOUT 2", "SET FORMAT json", "VERBOSE STATUS"]


@pytest.mark.long
def test_counts_that_contradict_make_it_possible_only(start):
    job = start()
    job.answer([8812, 8812, 8811])
    verdict = job.look("--ras=always", code=CANNOT_TELL)
    assert verdict["certainty"] == "possible"
    assert any("NCCL's RAS shows something else" in line for line in verdict["missing_evidence"])


@pytest.mark.parametrize("flags, words", [((), "the release of NCCL is unknown"),
                                          (("--ras=never",), "--ras=never")])
def test_a_job_is_not_asked_where_that_could_end_it(start, flags, words):
    job = start()
    verdict = job.look(*flags)
    assert any("NCCL's RAS: it was not asked" in line and words in line for line in verdict["missing_evidence"])
    assert job.asked == []


def test_a_release_without_a_known_defect_is_asked(start, tmp_path):
    library = tmp_path / "libnccl.so.2.29.7"
    library.write_bytes((BUILD / "sim" / "libnccl.so.2").read_bytes())
    job = start(library=library)
    job.answer([5, 4, 5])
    verdict = job.look()
    assert any("NCCL's RAS blames the same" in line for line in verdict["evidence"])
    assert job.asked.count("VERBOSE STATUS") == 1


@pytest.mark.long
def test_a_hostile_answer_changes_nothing(start):
    job = start()
    (job.folder / "answer").write_bytes(b"\x1b[2J{\"nccl_version\":" + os.urandom(1000) + b"[" * 100_000)
    verdict = job.look("--ras=always")
    assert [culprit["rank"] for culprit in verdict["culprits"]] == [1]
    assert "\x1b" not in json.dumps(verdict, ensure_ascii=False)
    assert any("its answer cannot be read" in line for line in verdict["missing_evidence"])
    wait_for(lambda: job.asked.count("VERBOSE STATUS") == 1)
