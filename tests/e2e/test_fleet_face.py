# SPDX-License-Identifier: Apache-2.0
"""Whichever of several daemons somebody asks shows the jobs of all, and acts for all."""
import signal
import subprocess
import time

from conftest import ROLLCALL, ask, wait_for
from postgres_server import postgres  # noqa: F401 (a fixture)
from test_fleet import confirmed, fleet, jobs_of  # noqa: F401 (a fixture)


def rollcall(daemon, *arguments):
    """What the command prints, if it succeeds."""
    return subprocess.run([ROLLCALL, *arguments, f"--daemon={daemon.address}"], capture_output=True,
                          text=True, check=True, timeout=60).stdout


def others(fleet, owner):  # noqa: F811
    return [daemon for daemon in fleet.daemons.values() if daemon is not owner]


def test_every_daemon_shows_all_jobs_and_what_there_is_about_each(fleet, start_job):  # noqa: F811
    names = ["a-job", "b-job", "c-job"]
    for name in names:
        start_job(fleet, name=name)
    wait_for(lambda: all(fleet.owner(name) for name in names))
    for daemon in fleet.daemons.values():
        wait_for(lambda: jobs_of(daemon) == {name: "hung" for name in names}, 40)
        jobs = ask(daemon, "jobs")
        assert {job["name"]: job["daemon"] for job in jobs["jobs"]} == {
            name: fleet.owner(name) for name in names}
        assert jobs["jobs_total"] == 3 and jobs["silent_daemons"] == []
        for name in names:
            view = ask(daemon, f"job?job={name}")
            assert view["status"]["daemon"] == fleet.owner(name)
            assert ask(daemon, f"processes?job={name}")["total"] == view["status"]["processes"]
            incident = ask(daemon, f"incident?id={view['incident']}")
            assert incident["job"] == name and incident["state"] == "confirmed"
        assert sorted(i["job"] for i in confirmed(daemon)) == names
        status = rollcall(daemon, "status")
        assert all(name in status for name in names) and "does not answer" not in status


def test_any_daemon_acts_for_the_owner_of_a_job(fleet, start_job):  # noqa: F811
    start_job(fleet, name="a-job")
    owner = fleet.owning("a-job")
    known, = wait_for(lambda: confirmed(owner))
    asked, third = others(fleet, owner)
    assert "rank 0" in rollcall(asked, "stacks", "a-job", "--each")
    rollcall(asked, "acknowledge", known["id"])
    rollcall(third, "note", known["id"], "a cable")
    incident = ask(owner, f"incident?id={known['id']}")
    assert "acknowledged" in incident and incident["notes"][0]["text"] == "a cable"
    rollcall(asked, "silence", "--job=z-*", "--for=1h")
    for daemon in fleet.daemons.values():
        silence, = wait_for(lambda: ask(daemon, "silences")["silences"])
    rollcall(third, "silence", f"--end={silence['id']}")
    for daemon in fleet.daemons.values():
        wait_for(lambda: not ask(daemon, "silences")["silences"])


def test_a_daemon_that_stands_still_is_named_in_time(fleet, start_job):  # noqa: F811
    start_job(fleet, name="a-job")
    owner = fleet.owning("a-job")
    asked = others(fleet, owner)[0]
    wait_for(lambda: "a-job" in jobs_of(asked))
    owner.process.send_signal(signal.SIGSTOP)
    begun = time.monotonic()
    jobs = ask(asked, "jobs?limit=9")  # an address that nobody has asked, so no answer is kept
    took = time.monotonic() - begun
    assert jobs["silent_daemons"] == [owner.name]
    assert took < 2.5, took
    assert f"{owner.name} does not answer" in rollcall(asked, "status")
    # Another daemon takes its job, and then nobody misses it.
    wait_for(lambda: ask(asked, "jobs")["silent_daemons"] == [] and "a-job" in jobs_of(asked), 30)
