# SPDX-License-Identifier: Apache-2.0
"""What the tests of a row of cases.py have in common: the verdict, and the program without its mistake."""

import os
import pathlib
import re
import subprocess

from expected_verdict import decide, faults, misplaced, scored_advice, told_verdict
from watched_job import WatchedJob

ROLLCALL = pathlib.Path(os.environ["ROLLCALL_BUILD"]).resolve() / "bin" / "rollcall"
START_SECONDS = 40  # of Ray, or of PyTorch in three processes, on a busy machine


class StandstillRun(WatchedJob):
    """A row's program under `rollcall run`, with System V's objects and compiled program of its own."""

    def __init__(self, row, folder, hang_after, fixed=False, seconds=None):
        super().__init__(folder)
        self.row, self.place = row, self.work / "place"
        self.place.mkdir(parents=True)
        if row.is_c:
            subprocess.run(row.compile_command(self.work), check=True)
        job = row.command(self.place, self.work, fixed=fixed, seconds=seconds or 3 * hang_after)
        self.command = [str(ROLLCALL), "run", f"--hang-after={hang_after}s", "--on-hang=abort",
                        f"--report-dir={self.reports}", "--", *job]
        # Without these Ray keeps a secret in the home folder, and reports to its makers what it
        # runs.
        self.env = dict(os.environ, RAY_AUTH_MODE="disabled", RAY_USAGE_STATS_ENABLED="0")

    def go(self, limit):
        try:
            return super().go(limit)
        finally:
            self.row.remove_ipc(self.place)


def without_line(row, verdict):
    """"" if a line of the row's is where each culprit stands, or, if there is none, where ranks wait."""
    if not row.at or verdict["culprits"]:
        return misplaced(row.lines, verdict) if row.at else ""
    places = [place["at"] for place in verdict["waiting_at"]]
    if any(re.search(rf"(^|/){line}\b", text) for line in row.lines for text in (*places, verdict["summary"])):
        return ""
    return f"waiting at {places}, not {row.lines}: {verdict['summary']}"


def wrong_in(row, run):
    found = faults(row, run.incidents)
    if len(run.incidents) == 1:
        found += filter(None, [without_line(row, run.incidents[0]["verdicts"][0])])
    if run.exit_code not in (-1, 75):
        found.append(f"ended with {run.exit_code}")
    return found


def record_scores(row, run, record_property):
    """For the counts of tests/support/verdict_scores.py. A hang of which nothing is said misses all of them."""
    verdict = told_verdict(run.incidents)
    culprits = tuple(sorted(culprit["rank"] for culprit in verdict["culprits"]))
    fits = {
        "cause and culprits": (f"{verdict['cause']} {culprits}", bool(run.incidents) and
                               verdict["cause"] in row.causes and culprits == row.culprits),
        "line": (", ".join(row.lines), bool(run.incidents) and not without_line(row, verdict)),
    }
    for part, (said, right) in fits.items():
        record_property(part, (row.program, said, right, verdict["summary"]))
    record_property("first advice", scored_advice(row, run.incidents))


def check_verdict(row, folder, record_property, hang_after=10):
    """Within three times hang_after."""
    limit = START_SECONDS + 3 * hang_after
    run = StandstillRun(row, folder / "1", hang_after).go(limit)
    if run.lacks_stacks():
        run = StandstillRun(row, folder / "2", hang_after).go(limit)
    record_scores(row, run, record_property)
    decide(row, wrong_in(row, run), run.output)


def check_health(row, folder, hang_after=10, seconds=None):
    """The program without its mistake lasts three times hang_after, or `seconds`."""
    run = StandstillRun(row, folder, hang_after, fixed=True, seconds=seconds)
    run.go(2 * START_SECONDS + 6 * hang_after + (seconds or 3 * hang_after))
    assert run.exit_code == 0, run.output
    said = [line for line in run.said if not line.endswith("nothing to watch")]  # of recorded calls there are none
    assert said == [] and run.incidents == [], run.output
