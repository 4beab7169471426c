# SPDX-License-Identifier: Apache-2.0
"""The programs of gloo/: real PyTorch on gloo, without NCCL. The one table of what Rollcall must say about
each.

Each has a twin, the same program with --fixed, which ends with 0 and without an incident.
"""

import functools

from hang_cases import HERE
from reported_cases import Case

# As certain as on NCCL.
Row = functools.partial(Case, folder=HERE / "gloo", least="certain")

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
BRANCHES = [
    Row("branches.sums_once_more", ("operation_mismatch",), (2,), ranks=3, says=("AllReduce", "Barrier")),
    Row("branches.has_fewer_batches", ("operation_mismatch",), (3,), says=("Barrier", "AllReduce")),
    Row("branches.broadcasts_from_itself", ("argument_mismatch",), (2,), ranks=3, says=("Broadcast", "root")),
    Row("branches.gathers_a_short_batch", ("argument_mismatch",), (1,), ranks=3, at="", says=("AllGather", r"\b12\b")),
    Row("branches.only_the_first_gathers", ("operation_mismatch",), (0,), ranks=3, says=("AllGather", "AllReduce")),
    Row("branches.raises_while_a_thread_lives", ("teardown_hang", "missing_rank", "rank_exited"), (1,), ranks=3,
        at="", says=("KeyError: 9",)),
]
GROUPS = [
    Row("groups.three_pairs_in_a_circle", ("deadlock",), (0, 1, 2), ranks=3, at="",
        says=('"pair 0"', '"pair 1"', '"pair 2"')),
    # What decides is the rank's own past.
    Row("groups.skips_its_pair", ("missing_rank", "deadlock"), (1,), ranks=3, most="likely",
        says=(r'AllReduce #35 on gloo communicator "pair"',)),
    Row("groups.some_ranks_make_a_group", ("init_incomplete",), (2,), ranks=3, most="likely"),
]
LIBRARIES = [
    Row("libraries.saves_alone", ("operation_mismatch",), (0,), ranks=3, says=("Barrier",)),
    Row("libraries.skips_a_bad_loss", ("operation_mismatch",), (1,), ranks=3, says=("Barrier", "AllReduce")),
    Row("libraries.checks_each_call", ("missing_rank",), (1,), ranks=3, says=("gloo communicator",),
        env={"TORCH_DISTRIBUTED_DEBUG": "DETAIL"}, own_processes=True),
    Row("libraries.loader_never_delivers", ("missing_rank",), (1,), ranks=3, says=("AllReduce #4",)),
]
START = [
    # Rank 0 waits in the store, and what for is not always seen.
    Row("start.never_joins", ("init_incomplete",), (1,), ranks=3, own_processes=True, least="likely"),
]
MESSAGES = [
    Row("messages.never_receives", ("unmatched_p2p", "missing_rank"), (1,), ranks=2, says=("Send",)),
    Row("messages.never_sends", ("unmatched_p2p", "missing_rank"), (0,), ranks=2, says=("Recv",)),
    # Their own past decides, here and where one of the batch is lacking.
    Row("messages.both_receive_first", ("unmatched_p2p", "deadlock"), (0, 1), ranks=2, most="likely", at=""),
    Row("messages.sends_to_the_wrong_rank", ("unmatched_p2p",), (1,), ranks=3, says=("Send|Recv",),
        defect="a likely deadlock of all: nobody asks whether a rank has sent to another one in all rounds before"),
    Row("messages.forgets_one_of_the_batch", ("unmatched_p2p",), (1,), ranks=2, most="likely", says=("Recv",)),
    # One took too few or the other sent too many: the calls do not show it.
    Row("messages.counts_a_round_twice", ("unmatched_p2p",), (2,), most="likely", says=("Recv from rank 2", "tag")),
    Row("messages.tags_of_one_side", ("unmatched_p2p",), (0, 1), ranks=2, most="likely", at="", says=("tag",)),
    Row("messages.leaves_out_a_report", ("unmatched_p2p",), (2,), most="likely", says=("Recv from rank 2",)),
    # Nobody knows whose message is lacking: the receive is for any.
    Row("messages.takes_one_too_many", ("unmatched_p2p",), (0,), most="likely", says=("from any rank",)),
    Row("messages.takes_one_too_few", ("unmatched_p2p",), (0, 1), ranks=2, most="likely", says=("Send",)),
]
KEY = r'key "[^"]*%s" of the store'
STORES = [
    Row("stores.setter_stands_elsewhere", ("missing_rank",), (0,), ranks=3, most="likely", says=(KEY % "saved",)),
    Row("stores.file_is_never_ready", ("missing_rank",), (1,), ranks=3, most="likely",
        says=(KEY % "data/ready",)),
    Row("stores.comes_to_no_barrier", ("missing_rank",), (2,), most="likely", says=(KEY % "all-here",)),
    Row("stores.waits_for_a_wrong_key", ("missing_rank",), (2,), ranks=3, most="likely", says=("AllReduce #3",)),
    # The job ends by itself, after its own time-out.
    Row("stores.nobody_sets_the_key", ("missing_rank",), (0, 1, 2), ranks=3, most="possible", seconds=90,
        says=(KEY % "go", "which no rank sets")),
    Row("stores.member_never_comes", ("init_incomplete",), (1,), ranks=3),
]
KINDS = [CALLS, BRANCHES, GROUPS, LIBRARIES, START, MESSAGES, STORES]
CASES = [case for kind in KINDS for case in kind]
