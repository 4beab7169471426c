# SPDX-License-Identifier: Apache-2.0
"""Daemons that are cut off from the database, alone or together: who may alert, and for how long nobody can."""
import threading
import time

import pytest
from conftest import wait_for
from fleet_chaos import ChaosFleet, ChaosJob, fleet, judge, read_incidents, tell_story  # noqa: F401 (a fixture)
from postgres_server import postgres  # noqa: F401 (a fixture)

pytestmark = pytest.mark.long

LEASE = 6  # seconds


class AlertersWatch:
    """Which daemons could alert for a job at each moment: the owner by the database that holds its lease by its
    own word. samples: (time, owner, whether it holds its lease, names of all that hold one)."""

    def __init__(self, fleet, job):
        self.fleet, self.job, self.samples, self.is_over = fleet, job, [], False
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self):
        while not self.is_over:
            owner = self.fleet.owner(self.job)
            is_held = owner is not None and owner.holds_lease()
            self.samples.append((time.monotonic(), owner.name if owner else None, is_held))
            time.sleep(0.05)

    def end(self):
        self.is_over = True
        self.thread.join()

    def longest_gap(self):
        """Seconds without a daemon that could alert, and the longest time between two looks."""
        longest, since = 0.0, None
        for when, _, is_held in self.samples:
            since = None if is_held else since or when
            longest = max(longest, when - since if since else 0.0)
        times = [when for when, _, _ in self.samples]
        return longest, max(later - earlier for earlier, later in zip(times, times[1:]))

    def owners(self):
        """One after the other."""
        names = [name for _, name, _ in self.samples]
        return [name for i, name in enumerate(names) if i == 0 or names[i - 1] != name]


def test_a_daemon_that_loses_the_database_alone_gives_way_to_another(fleet, capsys):
    job = ChaosJob(fleet, "a-job")
    watch = None
    try:
        wait_for(lambda: (job.folder / "gaps.0").exists())
        owner = wait_for(lambda: fleet.owner("a-job"))
        wait_for(lambda: fleet.has_owner(job))
        watch = AlertersWatch(fleet, "a-job")
        time.sleep(1)
        owner.link.stalls = True
        cut_at = time.monotonic()
        wait_for(lambda: not owner.holds_lease(), LEASE + 2)
        without_lease = time.monotonic() - cut_at
        job.hang(1)  # while no daemon may alert
        wait_for(lambda: fleet.owner("a-job") is not owner)
        taken = time.monotonic() - cut_at
        wait_for(lambda: fleet.alerts("a-job", "firing"))
        heir = fleet.owner("a-job")
        owner.link.stalls = False
        assert owner.says(f"but daemon {heir.name} can: handing job a-job over")
        time.sleep(6)
        watch.end()
        job.cancel()
        wait_for(lambda: fleet.alerts("a-job", "resolved"))
        wait_for(lambda: read_incidents(fleet.server)["a-job"][0][1] == "ended")
        counts = judge([job], read_incidents(fleet.server), fleet.alerts(), [])
        gap, between_looks = watch.longest_gap()
        with capsys.disabled():
            print(f"\n{counts}\nno lease {without_lease:.1f} s after the cut, another owner after {taken:.1f} s; "
                  f"nobody could alert for {gap:.1f} s, seen every {between_looks:.1f} s at least")
        assert not counts.problems, counts.problems
        assert watch.owners() == [owner.name, heir.name]
        assert taken >= without_lease
        assert gap <= 10 + between_looks
    finally:
        if watch is not None:
            watch.end()
        job.cancel()


def test_a_daemon_that_no_agent_reaches_gives_its_jobs_to_one_that_they_reach(tmp_path, postgres, capsys):
    fleet = ChaosFleet(tmp_path, postgres, have_fronts=True)
    job = ChaosJob(fleet, "a-job")
    try:
        wait_for(lambda: fleet.has_owner(job))
        owner = fleet.owner("a-job")
        owner.front.stalls = True  # the database still answers it
        cut_at = time.monotonic()
        job.hang(1)
        wait_for(lambda: fleet.owner("a-job") is not owner)
        taken = time.monotonic() - cut_at
        wait_for(lambda: fleet.alerts("a-job", "firing"))
        heir = fleet.owner("a-job")
        assert owner.says(f"agents of job a-job cannot reach this daemon but reach {heir.name}")
        assert owner.holds_lease()
        owner.front.stalls = False
        wait_for(lambda: owner.counts_ranks("a-job") == 2)
        time.sleep(12)  # it could have the job again
        assert fleet.owner("a-job") is heir
        job.cancel()
        wait_for(lambda: fleet.alerts("a-job", "resolved"))
        wait_for(lambda: read_incidents(fleet.server)["a-job"][0][1] == "ended")
        # The owner may have seen the hang before it lost its agents.
        counts = judge([job], read_incidents(fleet.server), fleet.alerts(), [cut_at])
        with capsys.disabled():
            print(f"\n{counts}\nanother owner {taken:.1f} s after the cut")
        assert not counts.problems, counts.problems
    finally:
        job.cancel()
        fleet.end()


def test_links_that_lose_a_third_of_their_packets_cost_no_incident_and_no_other_alert(fleet, capsys):
    """An owner may lose the job after it has sent an alert and before the database knows. Then the next one
    sends it again, by the same key."""
    begun_at = time.monotonic()
    for daemon in fleet.daemons.values():
        daemon.link.loss = 0.3
    jobs = []
    try:
        for number in range(3):
            jobs.append(ChaosJob(fleet, f"job-{number}"))
        for job in jobs:
            wait_for(lambda: (job.folder / "gaps.0").exists())
            job.hang(0)
        for job in jobs:
            wait_for(lambda: fleet.alerts(job.name, "firing"), 90)
        time.sleep(8)
        for daemon in fleet.daemons.values():
            daemon.link.loss = 0.0
        lossy = range(int(begun_at), int(time.monotonic()) + 1)
        for job in jobs:
            wait_for(lambda: fleet.has_owner(job))
            job.cancel()
        for job in jobs:
            wait_for(lambda: fleet.alerts(job.name, "resolved"), 90)

        def are_over():
            rows = read_incidents(fleet.server)
            return len(rows) == len(jobs) and all(row[0][1] == "ended" for row in rows.values())

        wait_for(are_over)
        counts = judge(jobs, read_incidents(fleet.server), fleet.alerts(), lossy)
        with capsys.disabled():
            print(f"\n{counts}")
        assert not counts.problems, counts.problems
    except AssertionError:
        with capsys.disabled():
            print(tell_story(fleet.server, fleet.alerts()))
        raise
    finally:
        for job in jobs:
            job.cancel()
