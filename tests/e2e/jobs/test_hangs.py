# SPDX-License-Identifier: Apache-2.0
"""A real job for every kind of hang that the daemon has a rule for. The cause, the culprits,
the call and the waiting ranks must be right, with and without markers."""
import re
import signal

import pytest
from conftest import ask, long, wait_for
from expected_verdict import has_certainty

MARKERS = ["1", long("0")]

HANGS = {
    # victim: (cause, culprits, operation, position)
    "one_rank_stops_calling": ("missing_rank", [3], "AllReduce", 10),
    "one_rank_exits_early": ("rank_exited", [3], "AllReduce", 12),
    "one_rank_dies": ("rank_died", [1], "AllReduce", 7),
    "one_rank_broadcasts": ("operation_mismatch", [0], "AllReduce", 5),
    "one_rank_sends_another_count": ("argument_mismatch", [2], "AllReduce", 6),
}


@pytest.mark.parametrize("markers", MARKERS)
@pytest.mark.parametrize("victim", HANGS)
def test_the_verdict_names_the_guilty_rank(run, victim, markers):
    cause, culprits, operation, position = HANGS[victim]
    result = run(victim, env={"ROLLCALL_MARKERS": markers})
    assert result.exit_code == 75, result.err
    verdict = result.verdict
    assert verdict["cause"] == cause, verdict["summary"]
    assert [c["rank"] for c in verdict["culprits"]] == culprits
    assert verdict["call"]["operation"] == operation
    assert verdict["call"]["position"] == position
    assert set(verdict["waiting_ranks"]) <= set(range(4)) - set(culprits)
    assert verdict["advice"]
    if markers == "1":
        assert has_certainty(verdict, "certain"), verdict["missing_evidence"]


def test_the_sentence_begins_with_what_the_culprit_does(run):
    verdict = run("one_rank_stops_calling").verdict
    assert re.match(r"rank 3 \(\S+, pid \d+\) is in `Validate` \(one_rank_stops_calling\.cc:\d+\), "
                    r"waiting in pause, and has not called AllReduce #10 on communicator "
                    r'"all ranks"; 3 ranks have waited ', verdict["summary"]), verdict["summary"]
    assert re.search(r"/one_rank_stops_calling\.cc:\d+ in Validate$", verdict["culprits"][0]["at"])
    assert verdict["advice"][0]["id"] == "validates-alone", verdict["advice"]


# With GPU markers: victim: (cause, culprits, operation, certainty, simulation)
ENTANGLED = {
    # One rank may have skipped a receive before its send.
    "all_ranks_send_first": ("deadlock", [0, 1, 2, 3], None, "likely", {}),
    "one_rank_never_receives": ("unmatched_p2p", [1], "Send", "certain", {}),
    "one_rank_receives_less": ("unmatched_p2p", [0, 1], None, "likely", {}),
    "two_communicators_in_other_orders":
        ("deadlock", [0, 1, 2, 3], "AllReduce", None, {"ROLLCALL_SIM_SERIALIZE": "1"}),
    "one_gpu_is_busy": ("blocked_before_start", [2], "AllReduce", "certain", {}),
    "one_rank_never_destroys":
        ("teardown_hang", [3], "CommDestroy", "certain", {"ROLLCALL_SIM_DESTROY": "collective"}),
    "one_rank_swallows_an_error": ("nccl_error", [1], "Broadcast", "certain", {}),
}


@pytest.mark.long
def test_the_verdict_says_that_a_gpu_is_shared(run):
    verdict = run("one_gpu_is_busy", env={"CUDA_MPS_PIPE_DIRECTORY": "/tmp/nvidia-mps"}).verdict
    assert verdict["cause"] == "blocked_before_start"
    assert any("by MPS: work of other processes may delay them" in line
               for line in verdict["evidence"]), verdict["evidence"]


def entangled(run, victim, markers, **how):
    """The verdict on one of ENTANGLED, with the right cause and culprits."""
    cause, culprits, _, _, simulation = ENTANGLED[victim]
    result = run(victim, env={"ROLLCALL_MARKERS": markers, **simulation}, **how)
    assert result.exit_code == (128 + signal.SIGTERM if how else 75), result.err
    verdict = result.verdict
    assert verdict["cause"] == cause, verdict["summary"]
    assert sorted(c["rank"] for c in verdict["culprits"]) == culprits, verdict["summary"]
    return verdict


@pytest.mark.parametrize("victim", ENTANGLED)
def test_the_verdict_follows_the_waits_to_their_end(run, victim):
    _, _, operation, certainty, _ = ENTANGLED[victim]
    verdict = entangled(run, victim, "1")
    assert operation is None or verdict["call"]["operation"] == operation
    assert certainty is None or has_certainty(verdict, certainty), verdict["missing_evidence"]
    assert verdict["advice"]


# Without markers the daemon infers more, and a verdict may be too uncertain for an abort. The
# culprits must be the same.
@pytest.mark.long
@pytest.mark.parametrize("victim", sorted(set(ENTANGLED) - {"one_gpu_is_busy"}))
def test_the_verdict_follows_the_waits_without_markers_too(run, victim):
    entangled(run, victim, "0", on_hang="observe", until="report:")


@pytest.mark.long
def test_an_unobserved_death_is_blamed_but_never_as_certain(run):
    verdict = run("one_rank_dies", env={"DIE_AT_ONCE": "1"}).verdict
    assert verdict["cause"] == "rank_died", verdict["summary"]
    assert [c["rank"] for c in verdict["culprits"]] == [1]
    unknown = [line for line in verdict["missing_evidence"] if "exit status of rank 1" in line]
    assert bool(unknown) == (verdict["certainty"] != "certain"), verdict["missing_evidence"]


@pytest.mark.long
def test_the_dead_peer_comes_before_the_errors_that_it_caused(run):
    result = run("one_rank_dies", env={"ROLLCALL_SIM_PEER_DEATH": "error"})
    assert result.verdict["cause"] == "rank_died", result.verdict["summary"]
    assert [c["rank"] for c in result.verdict["culprits"]] == [1]


@pytest.mark.parametrize("guilty", [0, *map(long, (1, 2, 3))])
def test_the_rank_that_does_not_join_a_growing_communicator_is_the_culprit(run, guilty):
    verdict = run("grows", env={"WRONG": f"{guilty}:before"}).verdict
    assert verdict["cause"] == "init_incomplete", verdict["summary"]
    assert [c["rank"] for c in verdict["culprits"]] == [guilty]
    assert verdict["call"]["operation"] == "CommGrow"
    assert verdict["communicator"]["size"] == 4
    assert sorted(verdict["waiting_ranks"]) == sorted(set(range(4)) - {guilty})


@pytest.mark.parametrize("guilty", [long(0), long(2), 3])
def test_a_grown_communicator_has_one_id(run, guilty):
    verdict = run("grows", env={"WRONG": f"{guilty}:after"}).verdict
    assert verdict["cause"] == "missing_rank", verdict["summary"]
    assert [c["rank"] for c in verdict["culprits"]] == [guilty]
    assert verdict["call"]["position"] == 5
    assert sorted(verdict["waiting_ranks"]) == sorted(set(range(4)) - {guilty})


# A communicator connects in its first call, so NCCL launches nothing until all ranks have entered.
@pytest.mark.parametrize("markers", MARKERS)
@pytest.mark.parametrize("steps", [long(0), long(1), 5])
def test_the_verdict_names_the_guilty_rank_of_a_nonblocking_communicator(run, steps, markers):
    verdict = run("non_blocking", env={"WRONG": str(steps), "ROLLCALL_MARKERS": markers}).verdict
    assert verdict["cause"] == "missing_rank", verdict["summary"]
    assert [c["rank"] for c in verdict["culprits"]] == [3]
    assert verdict["call"]["position"] == steps
    assert sorted(verdict["waiting_ranks"]) == [0, 1, 2]
    if markers == "1" and steps > 0:
        assert has_certainty(verdict, "certain"), verdict["missing_evidence"]


# Where NCCL connects at init, it launches the first call at once, and that call hangs on the GPU.
@pytest.mark.long
def test_the_first_call_of_a_connected_nonblocking_communicator_can_hang(run):
    verdict = run("non_blocking", env={"WRONG": "0", "ROLLCALL_SIM_LAZY_CONNECT": "0"}).verdict
    assert verdict["cause"] == "missing_rank", verdict["summary"]
    assert [c["rank"] for c in verdict["culprits"]] == [3]
    assert sorted(verdict["waiting_ranks"]) == [0, 1, 2]
    assert has_certainty(verdict, "certain"), verdict["missing_evidence"]


@pytest.mark.parametrize("stops, cause, operation",
                         [("init", "init_incomplete", "CommInitRankConfig"),
                          ("finalize", "teardown_hang", "CommFinalize")])
def test_begin_and_end_of_a_nonblocking_communicator_need_all_ranks(run, stops, cause, operation):
    verdict = run("non_blocking",
                  env={"WRONG": stops, "ROLLCALL_SIM_DESTROY": "collective"}).verdict
    assert verdict["cause"] == cause, verdict["summary"]
    assert [c["rank"] for c in verdict["culprits"]] == [3]
    assert verdict["call"]["operation"] == operation
    assert sorted(verdict["waiting_ranks"]) == [0, 1, 2]


# An answer that another thread got before a call must not count for the call.
@pytest.mark.parametrize("steps", [long(0), 5])
def test_a_watchdog_thread_hides_no_wait(run, steps):
    verdict = run("non_blocking", env={"WRONG": str(steps), "WATCHDOG": "1"}).verdict
    assert verdict["cause"] == "missing_rank", verdict["summary"]
    assert [c["rank"] for c in verdict["culprits"]] == [3]
    assert sorted(verdict["waiting_ranks"]) == [0, 1, 2]


@pytest.mark.parametrize("environment", [{}, long({"WATCHDOG": "1"})])
def test_a_healthy_job_without_blocking_ends_without_an_incident(run, environment):
    result = run("non_blocking", hang_after="10s", env=environment)
    assert (result.exit_code, result.reports, result.err) == (0, [], "")


def test_a_communicator_may_grow(run):
    result = run("grows", hang_after="10s")
    assert (result.exit_code, result.reports, result.err) == (0, [], "")


def test_the_report_has_the_stack_of_the_absent_rank(run):
    result = run("one_rank_stops_calling")
    stacks = (result.reports[0] / "stacks.txt").read_text()
    assert "Validate" in stacks
    culprit = next(s for s in result.incident["stacks"] if s["culprit"])
    assert culprit["pid"] == result.verdict["culprits"][0]["pid"]


def test_the_verdict_names_a_rank_without_nccl_calls_with_pid_and_stack(run):
    result = run("one_rank_never_joins")
    verdict = result.verdict
    assert verdict["cause"] == "init_incomplete"
    assert [c["rank"] for c in verdict["culprits"]] == [3]
    assert verdict["culprits"][0]["pid"] > 0
    assert sorted(verdict["waiting_ranks"]) == [0, 1, 2]
    assert "LoadModel" in (result.reports[0] / "stacks.txt").read_text()


def test_a_rank_frozen_inside_a_call_is_a_stall_in_flight(run):
    # The certainty depends on the rank's stack, and is not always enough to abort the job.
    result = run("one_rank_freezes_in_a_call", on_hang="observe", until="report:")
    verdict = result.verdict
    assert verdict["cause"] == "stalled_in_flight", verdict["summary"]
    assert verdict["call"]["position"] == 4
    assert [c["rank"] for c in verdict["culprits"]] == [1]
    assert sorted(verdict["waiting_ranks"]) == [0, 2, 3]


def test_run_reports_a_mismatch_that_completes_and_the_job_goes_on(run):
    result = run("one_rank_reduces_otherwise", hang_after="60s", on_hang="observe")
    assert result.exit_code == 0, result.err
    verdict = result.verdict
    assert verdict["cause"] == "argument_mismatch"
    assert verdict["mismatched_fields"] == ["reduction"]
    assert [c["rank"] for c in verdict["culprits"]] == [1]


def test_a_contradiction_needs_no_timeout(run):
    result = run("one_rank_broadcasts", hang_after="600s")
    assert result.exit_code == 75
    assert result.verdict["cause"] == "operation_mismatch"


@pytest.mark.parametrize("markers", MARKERS)
def test_a_healthy_job_ends_without_an_incident(run, markers):
    result = run("healthy_mix", ranks=8, hang_after="10s", env={"ROLLCALL_MARKERS": markers})
    assert result.exit_code == 0, result.err
    assert result.reports == []
    assert result.err == ""


def test_markers_that_the_driver_refuses_cost_evidence_only(run):
    result = run("one_rank_stops_calling", env={"ROLLCALL_SIM_FAIL": "cuStreamWriteValue64_v2"})
    assert result.verdict["cause"] == "missing_rank"
    assert [c["rank"] for c in result.verdict["culprits"]] == [3]


# With markers the GPU may report the end of the other thread's call, and the wait does not show.
def test_two_threads_of_a_rank_in_one_communicator_are_named(run):
    verdict = run("one_rank_uses_two_threads", env={"ROLLCALL_MARKERS": "0"}).verdict
    assert (verdict["cause"], verdict["certainty"]) == ("concurrent_use", "likely"), verdict["summary"]
    assert [c["rank"] for c in verdict["culprits"]] == [3]


def test_a_rank_that_is_always_last_is_a_warning_and_no_incident(daemon, start_job):
    start_job(daemon, victim="one_rank_is_always_last", said=None)
    warning, = wait_for(lambda: [warning for job in ask(daemon, "status")["jobs"]
                                 for warning in job["warnings"]])
    assert warning.startswith("rank 3 "), warning
    assert ask(daemon, "incidents")["incidents"] == []
