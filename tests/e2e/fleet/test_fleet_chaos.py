# SPDX-License-Identifier: Apache-2.0
"""Several daemons on one PostgreSQL, whatever fails: each hang has one incident, one alert, one end, and the
right culprit; a healthy job has none.

ROLLCALL_CHAOS_SECONDS=600 is the long form: a daemon fails every 30 s. ROLLCALL_CHAOS_SEED chooses the order.
"""
import os
import random
import signal
import threading
import time

import pytest
from conftest import wait_for
from fleet_chaos import ChaosFleet, ChaosJob, fleet, judge, read_incidents, tell_story  # noqa: F401
from postgres_server import PostgresServer, postgres  # noqa: F401 (a fixture)

pytestmark = pytest.mark.long

SECONDS = int(os.environ.get("ROLLCALL_CHAOS_SECONDS", "0"))
SEED = int(os.environ.get("ROLLCALL_CHAOS_SEED", "1"))
IS_LONG = SECONDS > 0
EVERY = 30 if IS_LONG else 8      # seconds between two faults of daemons
SLOTS = 4                         # jobs at the same time
HEALTHY_OF = 4                    # one of so many jobs is healthy
ALERT_WITHIN = 120                # seconds, faults and all


class Disturber:
    """Does what fails, one thing after the other. times: when each began and ended. turn: held meanwhile."""

    def __init__(self, fleet):
        self.fleet, self.times, self.done, self.turn = fleet, [], [], threading.Lock()
        self.random = random.Random(SEED)

    def note(self, what):
        self.times.append(time.monotonic())
        self.done.append(what)

    def kill(self, daemon):
        self.note(f"kill -9 {daemon.name}")
        daemon.stop(signal.SIGKILL)
        time.sleep(self.random.choice([0, 2, 8]))
        daemon.start()

    def freeze(self, daemon):
        self.note(f"SIGSTOP {daemon.name}")
        daemon.send(signal.SIGSTOP)
        time.sleep(self.random.choice([4, 9, 14]) if IS_LONG else 9)
        daemon.send(signal.SIGCONT)
        self.times.append(time.monotonic())

    def upgrade(self, daemon):
        self.note(f"SIGTERM {daemon.name}")
        daemon.stop(signal.SIGTERM)
        time.sleep(self.random.choice([0, 3]))
        daemon.start()

    def restart_database(self):
        self.note("restart PostgreSQL")
        self.fleet.server.stop()
        time.sleep(self.random.choice([0, 1, 5]) if IS_LONG else 1)
        self.fleet.server.start()
        self.times.append(time.monotonic())

    def cut_connections(self):
        self.note("cut connections")
        self.fleet.server.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = "
                              "'rollcalld'")

    def run(self, until):
        """until(): all is over."""
        daemon_faults = [self.kill, self.freeze, self.upgrade]
        database_faults = [self.cut_connections, self.restart_database]
        names = sorted(self.fleet.daemons)
        for turn in range(10_000):
            begun = time.monotonic()
            with self.turn:
                daemon_faults[turn % 3](self.fleet.daemons[self.random.choice(names)])
            if until():
                return
            time.sleep(max(0, EVERY / 2 - (time.monotonic() - begun)))
            if turn % 2 == 0 or IS_LONG:
                with self.turn:
                    database_faults[turn // 2 % 2]()
            if until():
                return
            time.sleep(max(0, EVERY - (time.monotonic() - begun)))


class Slot:
    """Runs one job after the other, until the time is over."""

    def __init__(self, fleet, disturber, number, ends_at):
        self.fleet, self.disturber, self.number, self.ends_at = fleet, disturber, number, ends_at
        self.random = random.Random(SEED * 1000 + number)
        self.jobs, self.problem = [], None
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self):
        try:
            while not self.jobs or time.monotonic() < self.ends_at:
                self._run_job()
        except Exception as error:  # the test reports it
            self.problem = error

    def _run_job(self):
        number = self.number + SLOTS * len(self.jobs)
        job = ChaosJob(self.fleet, f"job-{number}", ranks=self.random.choice([2, 3]))
        self.jobs.append(job)
        try:
            wait_for(lambda: (job.folder / "gaps.0").exists())
            time.sleep(self.random.uniform(3, 15) if IS_LONG else self.number * 4 + 2)
            if number % HEALTHY_OF == HEALTHY_OF - 1:
                time.sleep(self.random.uniform(20, 60) if IS_LONG else 15)
                return job.finish()
            job.hang(self.random.randrange(job.ranks))
            wait_for(lambda: self.fleet.alerts(job.name, "firing"), ALERT_WITHIN)
            time.sleep(self.random.uniform(0, 40) if IS_LONG else max(0, 32 - 4 * self.number))
            # If no daemon owned the job at its end, its incident would end ten minutes later.
            with self.disturber.turn:
                wait_for(lambda: self.fleet.has_owner(job), ALERT_WITHIN)
                job.cancel()
                wait_for(lambda: self.fleet.alerts(job.name, "resolved"), ALERT_WITHIN)
        finally:
            if job.process.poll() is None:
                job.cancel()


def test_each_hang_has_one_incident_one_alert_one_end_and_the_right_culprit(fleet, capsys):
    disturber = Disturber(fleet)
    ends_at = time.monotonic() + SECONDS
    slots = [Slot(fleet, disturber, number, ends_at) for number in range(SLOTS)]
    disturber.run(lambda: (not IS_LONG and len(disturber.done) >= 5) or
                  (IS_LONG and time.monotonic() >= ends_at))
    for slot in slots:
        slot.thread.join()
    time.sleep(8)  # a second alert, or a wrong one, would come
    jobs = [job for slot in slots for job in slot.jobs]
    hung = {job.name for job in jobs if job.culprit is not None}

    def is_over():
        return all(state in ("ended", "resolved") for name, rows in read_incidents(fleet.server).items()
                   if name in hung for _, state in rows)

    deadline = time.monotonic() + 60
    while not is_over() and time.monotonic() < deadline:
        time.sleep(1)
    counts = judge(jobs, read_incidents(fleet.server), fleet.alerts(), disturber.times)
    with capsys.disabled():
        print(f"\n{counts}\nfaults: {len(disturber.done)}: {', '.join(disturber.done)}")
        if counts.problems:
            print(tell_story(fleet.server, fleet.alerts()))
    assert counts.hangs > 0 and counts.healthy > 0
    assert not counts.problems + [slot.problem for slot in slots if slot.problem], (counts.problems, [
        repr(slot.problem) for slot in slots if slot.problem])


@pytest.fixture
def two_servers():
    """A server and the one that follows it."""
    servers = [PostgresServer()]
    try:
        servers.append(PostgresServer(primary=servers[0]))
        servers[0].wait_for_standby()
        yield servers
    finally:
        for server in servers:
            server.end()


def test_all_daemons_go_on_with_the_standby_once_it_is_promoted(two_servers, tmp_path, capsys):
    first, second = two_servers
    url = (f"postgresql://rollcall@127.0.0.1:{first.port},127.0.0.1:{second.port}/rollcall"
           "?target_session_attrs=read-write")
    fleet = ChaosFleet(tmp_path, first, direct_url=url)
    jobs = []
    try:
        jobs.append(ChaosJob(fleet, "before", ranks=3))
        wait_for(lambda: (jobs[0].folder / "gaps.0").exists())
        jobs[0].hang(1)
        wait_for(lambda: fleet.alerts("before", "firing"))
        wait_for(lambda: first.sql("SELECT sent FROM rollcall.outbox") == [["1"]])
        known = read_incidents(first)
        first.stop(signal.SIGQUIT)  # at once, without a word to the daemons
        lost_at = time.monotonic()
        wait_for(lambda: not any(daemon.holds_lease() for daemon in fleet.daemons.values()))
        second.promote()
        promoted_at = time.monotonic()
        fleet.server = second
        wait_for(lambda: all(daemon.holds_lease() for daemon in fleet.daemons.values()))
        back_at = time.monotonic()
        jobs.append(ChaosJob(fleet, "after"))
        wait_for(lambda: (jobs[1].folder / "gaps.0").exists())
        jobs[1].hang(0)
        wait_for(lambda: fleet.alerts("after", "firing"))
        assert read_incidents(second)["before"] == known["before"]
        for job in jobs:
            job.cancel()
        for job in jobs:
            wait_for(lambda: fleet.alerts(job.name, "resolved"))
        wait_for(lambda: all(rows[0][1] == "ended" for rows in read_incidents(second).values()))
        counts = judge(jobs, read_incidents(second), fleet.alerts(), [])
        with capsys.disabled():
            print(f"\n{counts}\nleases back {back_at - promoted_at:.1f} s after the promotion, "
                  f"{promoted_at - lost_at:.1f} s after the loss")
        assert not counts.problems, counts.problems
    finally:
        for job in jobs:
            job.cancel()
        fleet.end()
