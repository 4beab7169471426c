# SPDX-License-Identifier: Apache-2.0
"""What the tables of hangs count as right and as wrong."""

import pytest
from expected_verdict import Expected, scored_advice

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
