# SPDX-License-Identifier: Apache-2.0
"""The programs of unseen/: small hangs that were written before the rules that judge them, to measure how
often the first advice fits. The one table of what Rollcall must say about each.

Each has a twin, the same program with --fixed, which ends with 0 and without an incident.
"""

import functools

from hang_cases import HERE
from reported_cases import Case

FOLDER = HERE / "unseen"
Row = functools.partial(Case, folder=FOLDER)
OTHER_CALL = ("operation_mismatch", "argument_mismatch")

SKIPS = [
    Row("skips.overflow_in_one_shard", OTHER_CALL, (2,), ("skipped-call",)),
    Row("skips.expert_without_tokens", OTHER_CALL, (3,), ("skipped-call", "gradients-differ")),
    Row("skips.nothing_left_after_filter", OTHER_CALL, (0,), ("skipped-call",), ranks=3),
    Row("skips.padding_is_cached", OTHER_CALL, (1,), ("skipped-call",)),
    Row("skips.average_counts_apart", OTHER_CALL, (1, 3), ("skipped-call",),
        defect="the past does not decide between two and two ranks"),
    Row("skips.recall_without_positives", OTHER_CALL, (1,), ("skipped-call",), ranks=3),
    Row("skips.bucket_of_zeros", OTHER_CALL, (2,), ("skipped-call",)),
    Row("skips.stays_frozen", OTHER_CALL, (1,), ("skipped-call", "gradients-differ"), ranks=3),
]
EXTRAS = [
    Row("extras.shows_weights_of_odd_loss", OTHER_CALL, (3,), ("extra-call",)),
    Row("extras.evaluates_one_more", OTHER_CALL, (0,), ("validates-alone", "extra-call")),
    Row("extras.tries_again_with_less", OTHER_CALL, (1,), ("extra-call",), ranks=3),
    Row("extras.warms_up_for_profile", OTHER_CALL, (0,), ("extra-call",)),
    Row("extras.meter_goes_early", OTHER_CALL, (2,), ("extra-call",)),
    Row("extras.odd_ranks_seed_again", OTHER_CALL, (1, 3), ("extra-call",),
        defect="the past does not decide between two and two ranks"),
    Row("extras.finds_learning_rate", OTHER_CALL, (0,), ("extra-call",), ranks=3),
    Row("extras.logs_norm_of_gradients", OTHER_CALL, (0,), ("extra-call", "clips-alone")),
]
LEFT = ("teardown_hang", "missing_rank", "rank_exited")
HANDLED = ("handles-an-exception",)
HANDLERS = [
    Row("handlers.meets_after_error", OTHER_CALL, (1,), HANDLED, says=("UnicodeDecodeError",)),
    Row("handlers.shapes_do_not_fit", LEFT, (1,), HANDLED, ranks=2, says=("RuntimeError: mat1 and mat2",),
        env={"ROLLCALL_SIM_DESTROY": "collective"}),
    Row("handlers.timings_on_the_way_out", OTHER_CALL, (2,), HANDLED, says=("KeyError: 9",)),
    Row("handlers.sums_at_exit", OTHER_CALL, (3,), (*HANDLED, "raised-an-exception"), says=("RuntimeError",)),
    Row("handlers.prefetch_gives_up", ("missing_rank",), (0,), ("waits-for-a-thread",), ranks=3),
    Row("handlers.watcher_outlives_main", LEFT, (0,), (*HANDLED, "raised-an-exception"), ranks=3, at="",
        says=("KeyError: 'label'",)),
    Row("handlers.gathers_again_after_checksum", OTHER_CALL, (2,), (*HANDLED, "extra-call")),
    Row("handlers.continues_after_error", OTHER_CALL, (1,), ("skipped-call",), ranks=3),
]
WAITS = [
    Row("waits.duplicates_are_sought", ("", "missing_rank"), (2,), ("late-rank", "waits-for-a-child"),
        most="likely", seconds=0),
    Row("waits.builds_kernels", ("missing_rank",), (1,), ("waits-for-a-child",), ranks=3),
    Row("waits.posts_twice", ("missing_rank",), (3,), ("mixed-backends", "extra-call"), says=(r"rank 0\b",),
        never=("remote server",)),
    Row("waits.journal_keeps_its_lock", ("missing_rank",), (1,), ("waits-for-a-thread",)),
    Row("waits.pool_waits_for_itself", ("missing_rank",), (0,), ("waits-for-a-thread",), ranks=3),
    Row("waits.meets_under_a_lock", ("missing_rank",), (2,), ("file-lock",), ranks=3),
    Row("waits.file_comes_after_the_barrier", ("missing_rank",), (2, 3), ("sleeps-alone",)),
    Row("waits.words_stay_in_a_buffer", ("missing_rank",), (2,), ("waits-for-a-child",), ranks=3),
]
CASES = [*SKIPS, *EXTRAS, *HANDLERS, *WAITS]
