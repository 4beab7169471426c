# SPDX-License-Identifier: Apache-2.0
"""What the tables of hangs count as right and as wrong."""

import importlib
import pathlib
import re

import pytest
from expected_verdict import Expected, scored_advice

TESTS = pathlib.Path(__file__).parent.parent
ADVICE = TESTS.parent / "docs" / "advice.md"

TOLD = [{"verdicts": [{"cause": "standstill", "culprits": [], "summary": "it stands", "waiting_at": [],
                       "advice": [{"id": "held-lock"}, {"id": "late-rank"}]}]}]


@pytest.mark.parametrize("row, incidents, fits", [
    (Expected("a.hang", ("standstill",), (), ("held-lock",)), TOLD, True),
    (Expected("a.hang", ("standstill",), (), ("late-rank",)), TOLD, False),
    (Expected("a.hang", ("standstill",), (), ("held-lock",)), [], False),
    (Expected("a.hang_that_may_be_idle", ("standstill", ""), (), ("held-lock",)), [], False),
    (Expected("an.idle_server", ("missing_rank", ""), (), ("late-rank",), seconds=0), [], True),
], ids=["first", "second", "silence", "allowed_silence", "right_silence"])
def test_silence_is_right_only_where_nothing_hangs(row, incidents, fits):
    program, _, counted, _ = scored_advice(row, incidents)
    assert (program, counted) == (row.program, fits)


@pytest.mark.parametrize("folder, table", [
    ("standstill", "cases"), ("torch", "reported_cases"), ("torch", "framework_cases")])
def test_each_piece_of_advice_of_a_table_exists(folder, table, monkeypatch):
    monkeypatch.setenv("ROLLCALL_BUILD", "none")
    monkeypatch.syspath_prepend(TESTS / folder)
    known = set(re.findall(r"^### (\S+)$", ADVICE.read_text(), re.M))
    rows = importlib.import_module(table).CASES
    assert [(row.program, advice) for row in rows for advice in row.advice if advice not in known] == []
