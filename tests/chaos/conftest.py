# SPDX-License-Identifier: Apache-2.0
"""The rounds: ROLLCALL_CHAOS_ROUNDS of them (10), from the seed ROLLCALL_CHAOS_SEED on (394: the
ten from there on contain every disturbance). ROLLCALL_CHAOS_PARALLEL (10) run at once."""
import concurrent.futures
import dataclasses
import os
import pathlib
import statistics
import tempfile

import chaos_round
import oracle
import pytest
import schedule

ROUNDS = int(os.environ.get("ROLLCALL_CHAOS_ROUNDS", 10))
FIRST_SEED = int(os.environ.get("ROLLCALL_CHAOS_SEED", 394))
PARALLEL = int(os.environ.get("ROLLCALL_CHAOS_PARALLEL", 10))
TRIES = 3  # of a round whose job stood still by itself, because the machine is loaded
LOG_LINES = 12
MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
finished = []


@dataclasses.dataclass
class Outcome:
    schedule: schedule.Schedule
    problems: list
    seen: oracle.Observation
    folder: object

    def __str__(self):
        logs = [f"--- {log.name}\n" + "".join(log.open(errors="replace").readlines()[-LOG_LINES:])
                for log in sorted(self.folder.glob("[ad]*.log"))]
        states = [f"  {time - self.seen.failed_at:7.2f} s after the fault: " +
                  oracle.describe(incident)
                  for time, incident in self.seen.states]
        return "\n".join([
            *self.problems, str(self.schedule), *states, *logs,
            f"again:  ROLLCALL_CHAOS_SEED={self.schedule.seed} ROLLCALL_CHAOS_ROUNDS=1 "
            "tests/run chaos"])


def run_round(seed, folder):
    for attempt in range(TRIES):
        here = folder / f"{seed}-{attempt}"
        here.mkdir()
        planned = schedule.make(seed)
        one = chaos_round.Round(planned, here)
        outcome = Outcome(planned, one.run(), one.seen, here)
        if not oracle.stood_still(one.seen):
            break
    finished.append(outcome)
    if outcome.problems:
        print(f"\nseed {seed}: {outcome.problems}", flush=True)
    return outcome


def pytest_generate_tests(metafunc):
    if "seed" in metafunc.fixturenames:
        metafunc.parametrize("seed", range(FIRST_SEED, FIRST_SEED + ROUNDS))


@pytest.fixture(scope="session", autouse=True)
def rounds(request):
    """A future for the outcome of each seed. They begin before the other tests, which mostly wait, as
    the rounds do. The files are in memory: a rank whose segment is on a busy disk waits for it, so
    that a healthy job stands still."""
    if not any("seed" in item.fixturenames for item in request.session.items):
        yield {}
        return
    with tempfile.TemporaryDirectory(prefix="rollcall-chaos-", dir=MEMORY) as name:
        yield from run_rounds(pathlib.Path(name))


def run_rounds(folder):
    with concurrent.futures.ThreadPoolExecutor(PARALLEL) as pool:
        yield {seed: pool.submit(run_round, seed, folder)
               for seed in range(FIRST_SEED, FIRST_SEED + ROUNDS)}


def pytest_terminal_summary(terminalreporter):
    delays = {}
    for outcome in finished:
        kind = outcome.schedule.fault.kind if outcome.schedule.fault else "healthy"
        delays.setdefault(kind, []).append(outcome.seen.named_after)
    for kind, seconds in sorted(delays.items()):
        named = "" if kind in ("healthy", "hiccup") else (
            f", named after {statistics.median(seconds):.1f} s (median), "
            f"{max(seconds):.1f} s (most)")
        terminalreporter.write_line(f"{kind}: {len(seconds)} rounds{named}")
