# SPDX-License-Identifier: Apache-2.0
"""ROLLCALL_STACKS=off, for a host or for a job: Rollcall takes no stacks there, the verdict stays, and the
report and `rollcall stacks` say why there are none."""
import json
import os
import subprocess

import pytest
from conftest import BUILD, ROLLCALL, VICTIMS, Service, reports_in, wait_for

OFF_BY_JOB = "the stacks of rank 3 are switched off (ROLLCALL_STACKS=off)"
OFF_BY_AGENT = "the stacks of rank 3 are switched off (--stacks=off of the agent)"


def stacks(*arguments):
    return subprocess.run([ROLLCALL, "stacks", *arguments], capture_output=True, text=True,
                          timeout=120, check=False)


def whole(folder):
    """The only report of a folder."""
    report, = wait_for(lambda: reports_in(folder))
    return report


def has_frames(process):
    return any(thread.get("frames") for thread in process.get("threads", []))


def check_that_a_report_without_stacks_says_why(report, why):
    incident = json.loads((report / "incident.json").read_text())
    verdict = incident["verdicts"][0]
    assert verdict["cause"] == "missing_rank"
    assert [culprit["rank"] for culprit in verdict["culprits"]] == [3]
    assert why in verdict["missing_evidence"]
    assert not any(has_frames(process) for process in incident.get("stacks", []))
    for name in ("report.txt", "report.html"):
        assert why in " ".join((report / name).read_text().split()), name
    assert "Validate" not in "".join(path.read_text() for path in report.iterdir())


def test_in_the_environment_of_a_job(run):
    result = run("one_rank_stops_calling", env={"ROLLCALL_STACKS": "off"})
    assert result.exit_code == 75, result.err
    check_that_a_report_without_stacks_says_why(result.reports[0], OFF_BY_JOB)


@pytest.mark.long
def test_without_it_the_same_report_has_stacks(run):
    result = run("one_rank_stops_calling")
    assert any(has_frames(process) for process in result.incident["stacks"])
    assert "Validate" in (result.reports[0] / "stacks.txt").read_text()
    assert "switched off" not in (result.reports[0] / "report.txt").read_text()


@pytest.fixture
def start_host(tmp_path):
    """start_host(daemon, job={...}, agent={...}): an agent of its own and a job, with environments."""
    services = []

    def start(daemon, job=None, agent=None, command=(VICTIMS / "one_rank_stops_calling",)):
        segments = tmp_path / "segments"
        segments.mkdir(mode=0o700)
        services.append(Service([BUILD / "bin" / "rollcall-agent", f"--daemon={daemon.address}",
                                 f"--dir={segments}", "--scope=directory"], env=agent))
        services.append(Service(
            [VICTIMS / "ranks", "-n", "4", "--keep-going", "--", *command],
            env={"LD_PRELOAD": str(BUILD / "lib" / "librollcall.so"),
                 "LD_LIBRARY_PATH": str(BUILD / "sim"), "ROLLCALL_DIR": str(segments),
                 "ROLLCALL_JOB": "a-job", **(job or {})}))
        return services[0], services[1]

    yield start
    for service in services[::-1]:
        if service.process.poll() is None:
            service.kill()


def test_in_the_environment_of_the_hosts_agent(daemon, start_host, tmp_path):
    agent, job = start_host(daemon, agent={"ROLLCALL_STACKS": "off"})
    check_that_a_report_without_stacks_says_why(whole(tmp_path / "daemon-reports"), OFF_BY_AGENT)
    asked = stacks(f"--daemon={daemon.address}", "a-job")
    assert asked.returncode == 1 and "Validate" not in asked.stdout
    why = "the agent of this host takes no stacks: it runs with --stacks=off"
    assert asked.stderr.count(why) == 4, asked.stderr
    assert job.process.poll() is None
    assert why in agent.end(), "the agent says what it refuses"


@pytest.mark.long
def test_in_the_environment_of_one_rank(daemon, start_host, tmp_path):
    start_host(daemon, command=(
        "sh", "-c", 'test "$RANK" = 3 && export ROLLCALL_STACKS=off; exec "$0"',
        VICTIMS / "one_rank_stops_calling"))
    report = whole(tmp_path / "daemon-reports")
    incident = json.loads((report / "incident.json").read_text())
    assert OFF_BY_JOB in incident["verdicts"][0]["missing_evidence"]
    asked = stacks(f"--daemon={daemon.address}", "--each", "a-job")
    assert asked.returncode == 0, asked.stderr
    refused, = asked.stderr.splitlines()
    assert refused.startswith("rollcall: rank 3, ")
    assert "switched off (ROLLCALL_STACKS=off in its environment)" in refused
    for rank in range(3):
        assert f"rank {rank}" in asked.stdout, asked.stdout
    assert "Validate" not in asked.stdout


def test_a_process_of_its_own_by_hand(tmp_path):
    with subprocess.Popen(["sleep", "60"], env={**os.environ, "ROLLCALL_STACKS": "off"}) as process:
        asked = [stacks(f"--way={way}", str(process.pid)) for way in ("auto", "outside", "inside")]
        alive = process.poll() is None
        process.kill()
    assert alive, "a signal that it does not know would have ended it"
    for one in asked:
        assert one.returncode == 1 and one.stdout == "", one
        assert "switched off (ROLLCALL_STACKS=off in its environment)" in one.stderr, one.stderr
