# SPDX-License-Identifier: Apache-2.0
"""Whatever happens to daemon, agents, network, disk and clocks: no wrong `certain`, no false alarm,
no lost incident, no double alert."""
import oracle
import pytest


def test_rollcall_says_what_the_job_did(seed, rounds):
    outcome = rounds[seed].result()
    if outcome.problems and oracle.stood_still(outcome.seen):
        pytest.skip(f"the job stood still for {outcome.seen.gap:.1f} s by itself: the "
                    "machine is too loaded")
    assert not outcome.problems, f"\n{outcome}"
