# SPDX-License-Identifier: Apache-2.0
"""Jobs that start again under their name, and several jobs on one host at once."""
import json
import os
import signal
import subprocess
import time

import pytest
from conftest import PATIENCE, ROLLCALL, VICTIMS, Service, ask, long


def rollcall(daemon, *arguments):
    return subprocess.run([ROLLCALL, *arguments],
                          env={**os.environ, "ROLLCALL_DAEMON": daemon.address},
                          capture_output=True, text=True, timeout=120)


def read_jobs(daemon, *arguments):
    answer = rollcall(daemon, "status", "--format=json", *arguments)
    return json.loads(answer.stdout)["jobs"] if answer.returncode == 0 else []


def wait_for_job(daemon, condition, *arguments):
    """The first job of `rollcall status` that meets the condition."""
    deadline = time.monotonic() + PATIENCE
    jobs = []
    while time.monotonic() < deadline:
        jobs = read_jobs(daemon, *arguments)
        for job in jobs:
            if condition(job):
                return job
        time.sleep(0.2)
    raise AssertionError(json.dumps(jobs, indent=1))


def is_up(attempt, ranks):
    return lambda job: (job["attempt"] == attempt and job["processes_alive"] == ranks and
                        job["communicators"] and
                        job["communicators"][0]["members"] == ranks)


def read_pids(daemon, job):
    processes = ask(daemon, f"processes?job={job}")["processes"]
    return {process["rank"]: process["pid"] for process in processes}


@pytest.fixture
def patient_daemon(start_daemon):
    return start_daemon("--hang-after=600s")


def test_a_job_that_is_killed_and_started_again_shares_nothing_with_its_former_life(
        patient_daemon, start_job):
    first = start_job(patient_daemon, ranks=8, said=None)
    wait_for_job(patient_daemon, is_up(0, 8))
    pids = read_pids(patient_daemon, "a-job")
    for rank in (1, 2, 3):
        os.kill(pids[rank], signal.SIGKILL)
    wait_for_job(patient_daemon, lambda job: job["processes_alive"] == 5)
    first.kill()
    wait_for_job(patient_daemon, lambda job: job["state"] == "ended")

    start_job(patient_daemon, ranks=8, said=None)
    job = wait_for_job(patient_daemon, is_up(1, 8))
    assert job["processes"] == 8
    assert len(job["communicators"]) == 1
    assert job["communicators"][0]["members"] == 8
    assert job["warnings"] == []
    former, = job["attempts"]
    assert (former["attempt"], former["state"]) == (0, "ended")
    assert (former["processes"], former["processes_alive"]) == (8, 0)
    assert former["processes_died"] >= 3
    text = rollcall(patient_daemon, "status", "a-job").stdout
    assert "a-job attempt 1: " in text and "8 of 8 processes alive" in text
    assert "  attempt 0 ended 20" in text and " of 8 processes died" in text

    former, = read_jobs(patient_daemon, "--attempt=0", "a-job")
    assert (former["attempt"], former["processes_alive"]) == (0, 0)
    assert [other["attempt"] for other in former["attempts"]] == [1]
    for command in ("stacks", "status"):
        unknown = rollcall(patient_daemon, command, "--attempt=7", "a-job")
        assert (unknown.returncode, unknown.stdout) == (1, "")
        assert "job \"a-job\" has no attempt 7; it has attempts 0-1" in unknown.stderr


@pytest.mark.parametrize("counter", ["TORCHELASTIC_RESTART_COUNT", long("COUNTS_NOTHING")])
def test_a_restart_at_the_same_address_within_one_run_is_a_new_attempt(patient_daemon, tmp_path,
                                                                       counter):
    ranks = f"{VICTIMS / 'ranks'} -n 4 --grace 1 --"
    script = (f"{counter}=0 {ranks} {VICTIMS / 'one_rank_dies'}; "
              f"{counter}=1 {ranks} {VICTIMS / 'one_rank_stops_calling'}")
    job = Service([ROLLCALL, "run", "--sim", f"--daemon={patient_daemon.address}",
                   "--hang-after=600s", f"--report-dir={tmp_path / 'here'}", "--", "sh", "-c",
                   script],
                  env={"ROLLCALL_JOB": "a-job", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29500"})
    try:
        shown = wait_for_job(patient_daemon, is_up(1, 4))
        assert shown["processes"] == 4
        assert shown["warnings"] == []
        former, = shown["attempts"]
        assert (former["attempt"], former["state"], former["processes"]) == (0, "ended", 4)
        assert former["processes_died"] >= 1
    finally:
        job.kill()


@pytest.mark.long
def test_two_live_jobs_of_one_name_are_two_attempts_and_a_warning(patient_daemon, start_job):
    start_job(patient_daemon, said=None)
    wait_for_job(patient_daemon, is_up(0, 4))
    start_job(patient_daemon, said=None)
    newer = wait_for_job(patient_daemon, is_up(1, 4))
    assert newer["processes"] == 4
    assert ["another job with this name was alive" in warning
            for warning in newer["warnings"]] == [True]
    older, = newer["attempts"]
    assert (older["attempt"], older["processes"], older["processes_alive"]) == (0, 4, 4)


@pytest.mark.long
def test_a_healthy_job_tells_nothing_of_the_hang_of_another_job_of_its_name(daemon, start_job, run):
    start_job(daemon, said="rank 3")
    # Its ranks make no call for longer than --hang-after, while the other job hangs.
    healthy = run("pauses", flags=[f"--daemon={daemon.address}"],
                  env={"ROLLCALL_JOB": "a-job", "PAUSE_SECONDS": "12"})
    assert "rank" not in healthy.err, "it tells of the other job"
    assert healthy.reports == []
    assert healthy.exit_code == 0, healthy.err
    attempts = read_jobs(daemon, "--attempt=0", "a-job")
    assert attempts[0]["state"] == "hung", "the other job does not hang any more"


@pytest.mark.long
def test_two_jobs_on_one_host_do_not_disturb_each_other(daemon, start_job):
    start_job(daemon, name="one", said="rank 3")
    start_job(daemon, name="other", said="rank 3")
    for name in ("one", "other"):
        job = wait_for_job(daemon, is_up(0, 4), name)
        assert (job["processes"], job["attempts"], job["warnings"]) == (4, [], [])
        assert len(job["communicators"]) == 1
    incidents = json.loads(rollcall(daemon, "incidents", "--format=json").stdout)["incidents"]
    assert sorted(incident["job"] for incident in incidents) == ["one", "other"]
    for incident in incidents:
        verdict = incident["verdicts"][0]
        assert verdict["cause"] == "missing_rank"
        assert [culprit["rank"] for culprit in verdict["culprits"]] == [3]


def test_a_culprit_has_its_node_its_pod_and_its_gpu(run):
    gpu = "GPU-11111111-2222-3333-4444-555555555555"
    result = run("one_rank_stops_calling",
                 env={"NODE_NAME": "gpu-17", "POD_NAME": "train-0", "POD_NAMESPACE": "ml",
                      "NVIDIA_VISIBLE_DEVICES": gpu, "ROLLCALL_ATTEMPT": "2",
                      "ROLLCALL_JOB": "a-job"})
    culprit, = result.verdict["culprits"]
    assert (culprit["node"], culprit["pod"]) == ("gpu-17", "ml/train-0")
    assert culprit["gpu_uuid"] == gpu
    assert (result.incident["tenant"], result.incident["attempt"]) == ("default", 2)
    assert "-a-job.2-missing_rank" in result.reports[0].name
