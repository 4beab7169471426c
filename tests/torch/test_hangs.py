# SPDX-License-Identifier: Apache-2.0
"""The five hangs that people write about, with the frameworks that cause them: each gets its
verdict, and each is healthy when it is fixed."""

import contextlib
import dataclasses
import fcntl
import os
import re
import signal
import time

import pytest
from hang_cases import HANGS, ON_GLOO, Run, by_name, meanwhile, middle


def check(hang, run):
    assert run.exit_code in (75, 1), run.output  # 1: torchrun was quicker to end it
    assert len(run.incidents) == 1, run.output
    verdict = run.incidents[0]["verdicts"][0]
    assert verdict["cause"] == hang.cause, verdict["summary"]
    assert [culprit["rank"] for culprit in verdict["culprits"]] == [hang.culprit(4)]
    assert hang.advice in [advice["id"] for advice in verdict["advice"]], verdict["advice"]
    if hang.operation:
        assert verdict["call"]["operation"] == hang.operation
    (culprit,) = verdict["culprits"]
    if culprit["error"]:
        assert culprit["error"].startswith(hang.at)
        assert hang.script.split("/")[1] in culprit["error"]
    elif hang.at:
        assert re.search(rf"/{hang.script}:\d+ in (\S+\.)?{hang.at}$", culprit["at"]), culprit
    places = [place for place in verdict["waiting_at"]
              if re.search(rf"/{hang.script}:\d+ in (\S+\.)?{hang.waiting_at}$", place["at"])]
    assert places or culprit["error"] or not hang.waiting_at, verdict["waiting_at"]
    return verdict


# A name with a colon is another form of one of the five.
@pytest.mark.parametrize("hang", [
    pytest.param(hang, id=hang.name, marks=pytest.mark.long if ":" in hang.name else ()) for hang in HANGS])
def test_the_verdict(hang, tmp_path):
    verdict = check(hang, Run(hang, tmp_path).go())
    assert verdict["waiting_ranks"] == [rank for rank in range(4) if rank != hang.culprit(4)]


@pytest.mark.long
@pytest.mark.parametrize("hang", ON_GLOO, ids=lambda hang: hang.name)
def test_the_verdict_on_gloo(hang, tmp_path):
    verdict = check(hang, Run(hang, tmp_path, backend="gloo").go())
    assert "gloo communicator" in verdict["summary"]


@pytest.mark.long
def test_the_tensors_shapes_are_told(tmp_path):
    run = Run(by_name("uneven-inputs: last batch"), tmp_path).go()
    verdict = run.incidents[0]["verdicts"][0]
    assert verdict["call"]["shape"] == "[64, 2]"
    assert verdict["culprits"][0]["call"]["shape"] == "[24, 2]"
    assert "as [24, 2]" in verdict["summary"] and "as [64, 2]" in verdict["summary"]


@pytest.mark.long
@pytest.mark.parametrize("hang", HANGS, ids=lambda hang: hang.name)
def test_fixed_it_is_healthy_and_computes_the_same(hang, forks, tmp_path):
    losses = []
    for rollcall in (False, True):
        work = tmp_path / str(rollcall)
        work.mkdir()
        run = Run(hang, work, fixed=True, hang_after="10s", rollcall=rollcall,
                  forks=None if rollcall else forks).go()
        assert run.exit_code == 0, run.output
        losses += re.findall(r"final loss (\S+)", run.output)
        assert run.said == [] and run.incidents == []
    assert len(losses) == 2 and losses[0] == losses[1]


def with_lock(then):
    """then(run, lock) while the middle rank stands before the lock on its cache."""

    @contextlib.contextmanager
    def upset(run):
        with by_name("init-order").upset(run) as lock, meanwhile(lambda run: then(run, lock), run):
            yield

    return dataclasses.replace(by_name("init-order"), upset=upset)


@pytest.mark.long
def test_a_rank_that_comes_late_is_said_to_have_come(tmp_path):
    def release_after_the_report(run, lock):
        deadline = time.monotonic() + 60
        while not run.incidents and time.monotonic() < deadline:
            time.sleep(0.1)
        fcntl.flock(lock, fcntl.LOCK_UN)

    run = Run(with_lock(release_after_the_report), tmp_path, on_hang="observe").go()
    assert run.exit_code == 0 and "final loss" in run.output
    (incident,) = run.incidents
    assert incident["state"] == "resolved"
    assert incident["verdicts"][0]["cause"] == "init_incomplete"
    assert [culprit["rank"] for culprit in incident["verdicts"][0]["culprits"]] == [middle(4)]


@pytest.mark.long
def test_a_rank_that_dies_while_loading_is_named_before_torchrun_is_done(tmp_path):
    def kill(run, lock):
        run.wait_for("model loaded", count=3)
        run.wait_for_nccl(set(range(run.ranks)) - {middle(4)})
        time.sleep(1)  # from their first call to the creation of the communicator
        os.kill(run.find_pid(middle(4)), signal.SIGKILL)

    run = Run(with_lock(kill), tmp_path, hang_after="60s").go()
    (incident,) = run.incidents
    verdict = incident["verdicts"][0]
    assert verdict["cause"] == "rank_died" and "killed by signal 9" in verdict["summary"]
    assert [culprit["rank"] for culprit in verdict["culprits"]] == [middle(4)]
    assert "init-order" in [advice["id"] for advice in verdict["advice"]]
