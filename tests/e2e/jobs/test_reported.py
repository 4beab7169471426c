# SPDX-License-Identifier: Apache-2.0
"""Hangs of C++ programs as people reported them, and other forms of each: what the verdict must say,
and that the program without its mistake gets none. Those of PyTorch: tests/torch/test_reported.py."""
import dataclasses
import json
import re

import pytest
from expected_verdict import Expected, decide, faults

pytestmark = pytest.mark.long

# A device runs one kernel at a time.
ONE_KERNEL = {"ROLLCALL_SIM_SERIALIZE": "1"}
# Two processes of a shell loop that have one number, and no process has the last one.
TWICE_RANK_2 = ["bash", "-c", 'for rank in 0 1 2 2; do RANK=$rank LOCAL_RANK=$rank "$@" & done; wait', "bash"]
EACH_RANK = ["bash", "-c", 'for rank in 0 1 2 3; do RANK=$rank LOCAL_RANK=$rank "$@" & done; wait', "bash"]


@dataclasses.dataclass(frozen=True)
class Case(Expected):
    name: str = ""  # without it, the program's
    env: dict = dataclasses.field(default_factory=dict)
    launcher: tuple = ()
    fixed_launcher: tuple = ()
    device: int = -1  # of the culprit in its process


def unordered(program, waits, **more):
    """Two threads of each rank make calls on two communicators that share the device."""
    return Case(program, ("deadlock", "stalled_in_flight"), more.pop("culprits"),
                ("communicators-in-one-order",), most="likely", waits=waits,
                never=("program is not the cause", "NCCL_P2P_DISABLE"), **more)


LANES = r"two_threads_two_communicators\.cc:\d+ in (\S+::)?(Reduce|ReduceGradients|ReduceMetrics)\b"
ONE_NUMBER = dict(
    causes=("init_incomplete", "nccl_error", "rank_exited"), advises="number",
    never=("exited normally", "Load the model"))

CASES = [
    unordered("two_threads_two_communicators", LANES, ranks=2, culprits=(0, 1), env=ONE_KERNEL),
    unordered("two_threads_two_communicators", LANES, name="two threads, connected at once", ranks=2,
              culprits=(0, 1), env={**ONE_KERNEL, "ROLLCALL_SIM_LAZY_CONNECT": "0"}),
    unordered("prefetches_beside_training",
              r"prefetches_beside_training\.cc:\d+ in (\S+::)?(TrainStep|Fetch|Prefetch)\b|/victim\.h:\d+ in ",
              culprits=(0, 1, 2, 3), env=ONE_KERNEL),
    Case("two_ranks_with_one_number", culprits=None, innocent=(0, 3),
         says=("both join(ed)? as rank 1", "rank 3", "refused|invalid usage"), **ONE_NUMBER),
    Case("healthy_mix", name="one number twice in a shell loop", culprits=None,
         innocent=(0, 1, 3), says=("both join(ed)? as rank 2", "rank 3", "refused|invalid usage"),
         launcher=TWICE_RANK_2, fixed_launcher=EACH_RANK, env={"WORLD_SIZE": "4", "LOCAL_WORLD_SIZE": "4"},
         **ONE_NUMBER),
    Case("threads_are_ranks", ("missing_rank",), (3,), ranks=2, says=("rank 3",), waits=r" in (\S+::)?Train\b",
         device=1, never=(r"rank 1 \(\S+, pid \d+\) is in", "std::thread::join"),
         env={"ROLLCALL_SIM_DESTROY": "collective"}),
    Case("one_device_waits_for_data", ("missing_rank",), (1,), ranks=1, says=("rank 1", "NextBatch"),
         waits=r" in (\S+::)?TrainOn\b", device=1, never=("std::thread::join",),
         env={"ROLLCALL_SIM_DESTROY": "collective"}),
    Case("one_rank_counts_another_world", ("init_incomplete", "nccl_error", "rank_exited", "rank_died"), (1,),
         ranks=3, says=("4", "refused|invalid usage"), never=("exited normally", r"rank 3\b")),
]


def name_of(case):
    return case.name or case.program


def run_case(run, case, report_of, **how):
    env = {"ROLLCALL_TEST_ID_FILE": str(report_of / "id"), **case.env} if case.launcher else case.env
    return run(case.program, ranks=case.ranks, env=env, **how)


def wrong_in(case, result):
    incidents = [json.loads((report / "incident.json").read_text()) for report in result.reports]
    found = faults(case, incidents)
    if result.exit_code != 75:
        found.append(f"exit code {result.exit_code}, not 75")
    devices = [culprit["device"] for incident in incidents for culprit in incident["verdicts"][0]["culprits"]]
    if case.device >= 0 and devices != [case.device]:
        found.append(f"devices {devices}, not {[case.device]}")
    return found


@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_the_verdict(run, case, tmp_path):
    # The limit ends a job whose hang Rollcall does not see, or does not act on.
    result = run_case(run, case, tmp_path, hang_after="8s", launcher=list(case.launcher) or None,
                      stop_after=case.seconds)
    decide(case, wrong_in(case, result), result.err)


@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_fixed_it_is_healthy(run, case, tmp_path):
    result = run_case(run, case, tmp_path, hang_after="15s", launcher=list(case.fixed_launcher) or None,
                      arguments=() if case.launcher else ("--fixed",))
    assert (result.exit_code, result.reports, result.err) == (0, [], "")


def test_a_cycle_has_each_place_once(run):
    result = run("two_communicators_in_other_orders", env=ONE_KERNEL)
    lines = [line.partition(": ")[2].strip() for line in result.err.splitlines()
             if re.match(r"rollcall: +ranks? [\d,-]+ at ", line)]
    places = [part.partition(" at ")[2] for line in dict.fromkeys(lines) for part in line.split("; ")]
    assert places, result.err
    assert len(places) == len(set(places)), lines
