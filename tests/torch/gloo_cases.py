# SPDX-License-Identifier: Apache-2.0
"""The programs of gloo/: real PyTorch on gloo, without NCCL. The one table of what Rollcall must say about
each.

Each has a twin, the same program with --fixed, which ends with 0 and without an incident.
"""

import functools

from hang_cases import HERE
from reported_cases import Case

Row = functools.partial(Case, folder=HERE / "gloo")

CALLS = [
    Row("calls.skips_a_sum", ("missing_rank",), (1,), ranks=2,
        says=(r'has not called AllReduce #12 on gloo communicator "default_pg"',)),
    Row("calls.misses_a_barrier", ("missing_rank",), (2,), ranks=3, says=("has not called Barrier #2",)),
    Row("calls.misses_a_monitored_barrier", ("missing_rank",), (1,), ranks=3,
        says=("has not called monitored_barrier #2",)),
    Row("calls.leaves_async_work", ("missing_rank",), (0,), ranks=3, says=("AllReduce #12",)),
    Row("calls.broadcasts_instead", ("operation_mismatch",), (2,), ranks=3, says=("Broadcast", "AllReduce")),
    Row("calls.misses_objects", ("missing_rank",), (3,), says=("AllGather #3",)),
    Row("calls.swallows_an_exception", ("operation_mismatch",), (1,), ranks=3, says=("Barrier",)),
    Row("calls.stays_away_from_the_pair", ("missing_rank",), (1,), ranks=3,
        says=(r'AllReduce #0 on gloo communicator "pair"',)),
    Row("calls.two_groups_in_other_orders", ("deadlock",), (0, 1, 2), ranks=3, at="",
        says=('gloo communicator "first"', 'gloo communicator "second"')),
    Row("calls.stops_training", ("missing_rank",), (1,), ranks=2, says=("AllReduce",)),
]
MESSAGES = [
    Row("messages.never_receives", ("unmatched_p2p", "missing_rank"), (1,), ranks=2, says=("Send",)),
    Row("messages.never_sends", ("unmatched_p2p", "missing_rank"), (0,), ranks=2, says=("Recv",)),
    Row("messages.both_receive_first", ("unmatched_p2p", "deadlock"), (0, 1), ranks=2, at=""),
]
CASES = [*CALLS, *MESSAGES]
