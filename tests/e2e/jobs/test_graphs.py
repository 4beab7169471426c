# SPDX-License-Identifier: Apache-2.0
"""Jobs that replay CUDA graphs: their calls have positions, launch by launch."""
import re

import pytest
from conftest import long


def run_wrong(run, wrong, markers="1", **more):
    return run("replays_graphs", env={"WRONG": wrong, "ROLLCALL_GRAPH_MARKERS": markers}, **more)


@pytest.mark.parametrize("markers", [long("0"), "1"])
def test_a_healthy_job_that_replays_graphs_has_no_incident(run, markers):
    result = run_wrong(run, "nothing", markers)
    assert (result.exit_code, result.err, result.reports) == (0, "", [])


def test_a_rank_that_does_not_launch_the_graph_is_missing(run):
    result = run_wrong(run, "skips_launch")
    verdict = result.verdict
    assert verdict["cause"] == "missing_rank"
    assert [c["rank"] for c in verdict["culprits"]] == [3]
    # Two calls, then five launches of five.
    assert verdict["call"]["position"] == 27
    assert verdict["call"]["graph"] == {"graph": 1, "launch": 6, "call": 1, "calls": 5}
    assert "AllReduce #27 (CUDA graph 1, launch 6, call 1 of 5)" in verdict["summary"]


def test_the_verdict_names_the_call_of_a_graph_that_a_gpu_never_starts(run):
    verdict = run_wrong(run, "stays_inside").verdict
    assert verdict["cause"] == "blocked_before_start", verdict
    assert [c["rank"] for c in verdict["culprits"]] == [3]
    assert verdict["call"]["position"] == 30
    assert verdict["call"]["graph"] == {"graph": 1, "launch": 6, "call": 4, "calls": 5}


@pytest.mark.long
def test_without_graph_markers_the_verdict_says_that_the_call_is_unknown(run):
    verdict = run_wrong(run, "stays_inside", markers="0").verdict
    assert verdict["cause"] == "stalled_in_flight"
    assert verdict["call"]["graph"]["launch"] == 6
    assert any("in which of the graph's 5 calls the ranks wait" in m for m in verdict["missing_evidence"])


def test_another_count_within_a_graph_is_a_contradiction_at_once(run):
    verdict = run_wrong(run, "sums_less", hang_after="60s").verdict
    assert verdict["cause"] == "argument_mismatch"
    assert verdict["mismatched_fields"] == ["count"]
    assert [c["rank"] for c in verdict["culprits"]] == [3]
    assert verdict["call"]["position"] == 30


def test_the_verdict_says_that_a_rank_captured_the_call(run):
    verdict = run_wrong(run, "captures").verdict
    assert verdict["cause"] == "missing_rank"
    assert [c["rank"] for c in verdict["culprits"]] == [3]
    assert verdict["call"]["position"] == 32
    assert any(re.search("rank 3 has captured AllReduce.* into a CUDA graph", e)
               for e in verdict["evidence"]), verdict["evidence"]
    assert verdict["advice"][0]["id"] == "captured-on-some-ranks"


@pytest.mark.long
def test_calls_from_a_graph_match_those_made_at_once(run):
    result = run_wrong(run, "calls_directly")
    assert (result.exit_code, result.err, result.reports) == (0, "", [])
