# SPDX-License-Identifier: Apache-2.0
"""One rank fails, and torchrun ends the others. Rollcall completes the report before that, or
makes it from the files of the ranks. The report names the rank that failed first."""

import pathlib

import pytest
from hang_cases import HERE, Hang, Run

pytestmark = pytest.mark.long

SCRIPT = "crashes/train.py"
RAISED = next(number for number, line in
              enumerate((HERE / SCRIPT).read_text().splitlines(), start=1)
              if "raise DamagedBatch" in line)

CASES = {
    "raise": ("rank_exited", f"DamagedBatch: batch 12 has 3 of 16 samples at train.py:{RAISED}"),
    "exit": ("rank_exited", "exited with code 4"),
    "leave": ("rank_exited", "exited normally"),
    "kill": ("rank_died", "killed by signal 9"),
    "stop": ("missing_rank", "has not called"),
}


@pytest.mark.parametrize("how", CASES)
def test_who_failed_first_is_told(how, tmp_path):
    hang = Hang(how, SCRIPT, "", None, "", "", "", flags=(how,))
    # torchrun ends a job of which a rank fails, but not for one that leaves or stands still.
    run = Run(hang, tmp_path, hang_after="5s").go(60)
    cause, words = CASES[how]
    assert len(run.incidents) == 1, run.output
    (incident,) = run.incidents
    verdict = incident["verdicts"][0]
    assert (verdict["cause"], [culprit["rank"] for culprit in verdict["culprits"]]) == (cause, [3])
    assert verdict["waiting_ranks"] == [0, 1, 2]
    assert words in verdict["summary"], verdict["summary"]
    what = verdict["summary"].split(";")[0]  # the wait grows
    assert any(what in line for line in run.said)
    (report,) = run.reports.iterdir()
    assert sorted(file.name for file in pathlib.Path(report).iterdir()) == [
        "incident.json", "report.html", "report.txt", "stacks.txt"]
