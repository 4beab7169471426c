# SPDX-License-Identifier: Apache-2.0
"""Several daemons on one database: one of them dies, stands still, is upgraded, or comes."""
import json
import signal
import subprocess
import time
import types

import pytest
from conftest import BUILD, ROLLCALL, Service, ask, wait_for
from postgres_server import postgres  # noqa: F401 (a fixture)


class Fleet:
    """Daemons by name, and all their addresses in one, as --daemon wants them."""

    def __init__(self, tmp_path, postgres):
        self.folder, self.postgres = tmp_path, postgres
        self.daemons, self.alerts_file = {}, tmp_path / "alerts"
        self.logs = []

    def start(self, name, listen="127.0.0.1:0"):
        alert = self.alerts_file
        daemon = Service([BUILD / "bin" / "rollcalld", f"--listen={listen}", "--http=127.0.0.1:0",
                          "--hang-after=3s", f"--report-dir={self.folder / name}",
                          f"--store={self.postgres.url}", f"--daemon-name={name}",
                          f"--alert=exec=(cat; echo) >> {alert}"], env=self.postgres.environment)
        daemon.name = name
        self.daemons[name] = daemon
        said = daemon.read_until(r"agents on (127\.0\.0\.1:\d+), pages on (http://127\.0\.0\.1:\d+)/")
        daemon.address, daemon.page = said.groups()
        return daemon

    @property
    def address(self):
        return ",".join(daemon.address for daemon in self.daemons.values())

    def living(self):
        return [d for d in self.daemons.values() if d.process.poll() is None]

    def alerts(self):
        if not self.alerts_file.exists():
            return []
        return [json.loads(line) for line in self.alerts_file.read_text().splitlines() if line.strip()]

    def is_settled(self, names):
        """No job moves for longer than the daemons wait before they look which jobs prefer another one."""
        before = [self.owner(name) for name in names]
        time.sleep(7)
        return all(before) and [self.owner(name) for name in names] == before

    def owner(self, job):
        rows = self.postgres.sql(f"SELECT daemon FROM rollcall.owners WHERE job = '{job}'")
        return rows[0][0] if rows else None

    def owning(self, job):
        """The daemon that owns the job, once one does."""
        return self.daemons[wait_for(lambda: self.owner(job))]


def confirmed(daemon):
    return [i for i in ask(daemon, "incidents")["incidents"] if i["state"] == "confirmed"]


def jobs_of(daemon):
    return {job["name"]: job["state"] for job in ask(daemon, "jobs")["jobs"]}


@pytest.fixture
def fleet(tmp_path, postgres):
    """Three daemons on one database."""
    made = Fleet(tmp_path, postgres)
    for name in ("daemon-1", "daemon-2", "daemon-3"):
        made.start(name)
    wait_for(lambda: postgres.sql("SELECT count(*) FROM rollcall.daemons WHERE expires_at > now()") == [["3"]])
    yield made
    for daemon in made.living():
        daemon.process.send_signal(signal.SIGCONT)
        daemon.kill()


def test_the_incident_lives_on_when_the_owner_of_its_job_is_killed(fleet, start_job):
    start_job(fleet, name="a-job")
    owner = fleet.owning("a-job")
    known, = wait_for(lambda: confirmed(owner))
    wait_for(lambda: len(fleet.alerts()) == 1)
    wait_for(lambda: fleet.postgres.sql("SELECT sent FROM rollcall.outbox") == [["1"]])
    owner.kill(signal.SIGKILL)
    taken = wait_for(lambda: fleet.owner("a-job") != owner.name and fleet.owner("a-job"))
    heir = fleet.daemons[taken]
    wait_for(lambda: jobs_of(heir).get("a-job") == "hung")
    time.sleep(6)  # a second alert, or a wrong end, would come
    assert [(i["id"], i["state"]) for i in ask(heir, "incidents")["incidents"]] == [(known["id"], "confirmed")]
    assert [alert["status"] for alert in fleet.alerts()] == ["firing"]


@pytest.mark.long
def test_the_end_of_a_job_is_announced_once_by_its_new_owner(fleet, start_job):
    job = start_job(fleet, name="a-job")
    owner = fleet.owning("a-job")
    wait_for(lambda: len(fleet.alerts()) == 1)
    wait_for(lambda: fleet.postgres.sql("SELECT sent FROM rollcall.outbox") == [["1"]])
    owner.kill(signal.SIGKILL)
    heir = fleet.daemons[wait_for(lambda: fleet.owner("a-job") != owner.name and fleet.owner("a-job"))]
    wait_for(lambda: jobs_of(heir).get("a-job") == "hung")
    job.kill()
    wait_for(lambda: len(fleet.alerts()) == 2)
    time.sleep(3)
    assert [alert["status"] for alert in fleet.alerts()] == ["firing", "resolved"]


@pytest.mark.long
def test_a_daemon_that_stood_still_drops_its_jobs_when_it_wakes(fleet, start_job):
    start_job(fleet, name="a-job")
    owner = fleet.owning("a-job")
    known, = wait_for(lambda: confirmed(owner))
    wait_for(lambda: len(fleet.alerts()) == 1)
    owner.process.send_signal(signal.SIGSTOP)
    heir = fleet.daemons[wait_for(lambda: fleet.owner("a-job") != owner.name and fleet.owner("a-job"))]
    wait_for(lambda: jobs_of(heir).get("a-job") == "hung")
    owner.process.send_signal(signal.SIGCONT)
    owner.read_until("job a-job has moved to another daemon")
    time.sleep(6)
    assert fleet.owner("a-job") == heir.name
    for daemon in (owner, heir):
        assert [i["id"] for i in confirmed(daemon)] == [known["id"]]
    assert [alert["status"] for alert in fleet.alerts()] == ["firing"]


@pytest.mark.long
def test_an_upgrade_of_one_daemon_after_the_other_ends_no_incident_and_alerts_nobody(fleet, start_job):
    healthy = [start_job(fleet, victim="healthy_mix", name=f"healthy-{i}", said=None) for i in range(2)]
    start_job(fleet, name="a-job")
    known, = wait_for(lambda: confirmed(fleet.owning("a-job")))
    wait_for(lambda: len(fleet.alerts()) == 1)
    for name in list(fleet.daemons):
        address = fleet.daemons[name].address
        fleet.daemons[name].kill()  # SIGTERM, as an upgrade does
        fleet.start(name, listen=address)
        wait_for(lambda: fleet.owner("a-job") is not None)
        wait_for(lambda: jobs_of(fleet.owning("a-job")).get("a-job") == "hung")
    time.sleep(5)
    owner = fleet.owning("a-job")
    assert [(i["id"], i["state"]) for i in ask(owner, "incidents")["incidents"]] == [(known["id"], "confirmed")]
    assert [alert["status"] for alert in fleet.alerts()] == ["firing"]
    assert all(job.process.poll() in (None, 0) for job in healthy)


@pytest.mark.long
def test_two_halves_of_a_job_that_report_to_different_daemons_meet_at_its_owner(fleet, start_job):
    first, second = list(fleet.daemons.values())[:2]
    for daemon in (first, second):
        start_job(types.SimpleNamespace(address=daemon.address), name="a-job")
    owner = fleet.owning("a-job")
    # Two starts of one name at a time are two attempts of the job.
    wait_for(lambda: next((len(job["attempts"]) for job in ask(owner, "jobs")["jobs"]
                           if job["name"] == "a-job"), 0) == 1)
    assert fleet.postgres.sql("SELECT count(*) FROM rollcall.owners") == [["1"]]


@pytest.mark.long
def test_every_daemon_shows_the_jobs_and_incidents_of_all(fleet, start_job):
    names = []
    while len(names) < 5 or len({fleet.owner(name) for name in names}) == 1:
        assert len(names) < 12, "a dozen jobs, all at one daemon"
        names.append(f"job-{len(names)}")
        start_job(fleet, name=names[-1])
        fleet.owning(names[-1])
    for daemon in fleet.living():
        wait_for(lambda: set(jobs_of(daemon)) == set(names) and
                 set(jobs_of(daemon).values()) == {"hung"}, 60)
        said = subprocess.run([ROLLCALL, "status", f"--daemon={daemon.address}"], text=True,
                              capture_output=True, timeout=120, check=False)
        assert all(name in said.stdout for name in names), said.stdout
        assert len(confirmed(daemon)) == len(names)
        for name in names:
            assert ask(daemon, f"job?job={name}")["status"]["state"] == "hung"
    assert len(fleet.alerts()) == len(names)


@pytest.mark.long
def test_a_daemon_that_comes_takes_its_share_and_no_incident_ends(fleet, start_job):
    names = []
    while "daemon-3" not in [fleet.owner(name) for name in names]:
        assert len(names) < 12, "a dozen jobs, and none prefers this daemon"
        names.append(f"job-{len(names)}")
        start_job(fleet, name=names[-1])
        wait_for(lambda: fleet.owner(names[-1]))
    wait_for(lambda: fleet.is_settled(names))
    theirs = [name for name in names if fleet.owner(name) == "daemon-3"]
    ids = {i["id"] for i in wait_for(lambda: len(confirmed(fleet.daemons["daemon-1"])) == len(names) and
                                     confirmed(fleet.daemons["daemon-1"]), 60)}
    gone = fleet.daemons.pop("daemon-3")
    gone.kill()
    wait_for(lambda: all(fleet.owner(name) != "daemon-3" for name in theirs))
    fleet.start("daemon-3", listen=gone.address)
    # Only its share. Another daemon that this machine keeps from running may lose a job to it for a while.
    wait_for(lambda: [name for name in names if fleet.owner(name) == "daemon-3"] == theirs, 90)
    wait_for(lambda: all(jobs_of(fleet.daemons["daemon-3"]).get(name) == "hung" for name in names))
    time.sleep(5)
    assert {i["id"] for i in confirmed(fleet.daemons["daemon-3"])} == ids
    assert len(fleet.alerts()) == len(names)
