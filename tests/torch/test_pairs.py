# SPDX-License-Identifier: Apache-2.0
"""Two jobs, a trainer and an engine, that share a gloo group or a store of real PyTorch: one incident, which names
the side that failed and shows its error.

    tests/run torch tests/torch/test_pairs.py
"""

import contextlib
import dataclasses
import re
import sys
import threading
import time

import pytest
from hang_cases import BUILD, HERE
from watched_job import WatchedJob

FILE = HERE / "pairs" / "two_jobs.py"
LIMIT = 120  # seconds
OTHERS_HAVE = 10


@dataclasses.dataclass
class Pair:
    program: str
    job: str  # that has the incident
    cause: str
    culprit: int  # its rank in the incident
    says: tuple


PAIRS = [
    Pair("engine_raises", "engine", "rank_exited", 1, ("ValueError: no weight named lm_head in step 3",)),
    Pair("engine_waits", "engine", "missing_rank", 1, ("gloo communicator \"weights\"", "engine_waits")),
    Pair("trainer_waits", "trainer", "missing_rank", 1, ("trainer_waits",)),
    # The engine is gone, so the trainer reports it.
    Pair("engine_dies_before_its_key", "trainer", "rank_exited", 3,
         ("rank 3 is rank 1 of job engine: ", "ValueError: no weight named lm_head in step 3", "ready/3")),
]


class TwoJobs(WatchedJob):
    """Under one `rollcall run`, which ends neither: they are not its own job. `told`: the confirmed incidents before
    the test ends them, which would be news."""

    def __init__(self, program, work, fixed=False):
        super().__init__(work)
        self.command = [str(BUILD / "bin" / "rollcall"), "run", "--hang-after=6s", f"--report-dir={self.reports}", "--",
                        sys.executable, str(FILE), program, *(["--fixed"] if fixed else [])]

    @contextlib.contextmanager
    def upset(self):
        told = threading.Thread(target=self.wait_for_incidents)
        told.start()
        yield
        told.join()

    def wait_for_incidents(self):
        """The other job has as long again to come with one of its own."""
        self.told = []
        began = time.monotonic()
        until = began + LIMIT
        while time.monotonic() < until and (not hasattr(self, "process") or self.process.poll() is None):
            self.told = [incident for incident in self.incidents if "confirmed_at" in incident]
            if self.told and until == began + LIMIT:
                until = min(until, time.monotonic() + OTHERS_HAVE)
            time.sleep(0.2)
        if self.told and self.process.poll() is None:
            self.process.terminate()


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.program)
def test_one_incident_names_the_side_that_failed(pair, tmp_path):
    run = TwoJobs(pair.program, tmp_path).go(LIMIT + 20)
    assert [incident["job"] for incident in run.told] == [pair.job], run.output
    verdict = run.told[0]["verdicts"][0]
    told = verdict["cause"], [culprit["rank"] for culprit in verdict["culprits"]]
    assert told == (pair.cause, [pair.culprit]), verdict["summary"]
    others = [(culprit["job"], culprit["job_rank"]) for culprit in verdict["culprits"] if culprit["job"]]
    assert others == ([("engine", 1)] if pair.job == "trainer" and pair.culprit > 1 else [])
    for words in pair.says:
        assert re.search(words, verdict["summary"]), verdict["summary"]


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.program)
def test_fixed_both_are_healthy(pair, tmp_path):
    run = TwoJobs(pair.program, tmp_path, fixed=True).go(LIMIT)
    assert run.exit_code == 0, run.output
    assert len(re.findall(r"rank \d done", run.output)) == 4, run.output
    assert run.said == [] and run.incidents == []
