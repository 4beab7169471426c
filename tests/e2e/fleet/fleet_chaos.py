# SPDX-License-Identifier: Apache-2.0
"""Several daemons on one PostgreSQL, each with a link of its own to it, and jobs whose truth is known."""
import dataclasses
import json
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import time
import urllib.request

import pytest
from conftest import BUILD, ROLLCALL, VICTIMS, wait_for

sys.path.append(str(pathlib.Path(__file__).parents[2] / "chaos"))
from alert_receiver import Receiver
from postgres_server import free_port, postgres  # noqa: F401 (a fixture)
from proxy import Proxy

HANG_AFTER = 4
STOOD_STILL = 0.7 * HANG_AFTER  # a job that stood still for longer by itself was hung for a while
RETRANSMIT = 0.2  # seconds after which Linux sends a lost piece again; twice that after the next


class Link(Proxy):
    """The way of one daemon to the database. `loss`: of the packets, as TCP shows it: pieces come late."""

    loss = 0.0

    @property
    def delay(self):
        late, again = 0.0, RETRANSMIT
        while random.random() < self.loss:
            late, again = late + again, again * 2
        return late

    @delay.setter
    def delay(self, seconds):
        pass


class Daemon:
    """One address, at which a daemon can be started again. What it says goes to a file. `front`: a link by
    which agents and other daemons reach it, or None."""

    def __init__(self, name, folder, link, command, env, has_front=False):
        self.name, self.link, self.env = name, link, {**os.environ, **env}
        self.log = folder / f"{name}.log"
        listen, self.page = free_port(), f"http://127.0.0.1:{free_port()}"
        self.address, self.front = f"127.0.0.1:{listen}", None
        if has_front:
            port = free_port()
            self.front = Proxy(("127.0.0.1", port), ("127.0.0.1", listen))
            self.address = f"127.0.0.1:{port}"
        self.command = [*command, f"--listen=127.0.0.1:{listen}", f"--advertise={self.address}",
                        f"--http={self.page[7:]}", f"--daemon-name={name}", f"--report-dir={folder / name}"]
        self.process = None
        self.start()

    def start(self):
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                            env=self.env)
        wait_for(lambda: self.answers())

    def answers(self):
        assert self.process.poll() is None, self.log.read_text()[-2000:]
        return self.try_metrics() is not None

    def send(self, number):
        assert self.process.poll() is None, f"{self.name} has ended by itself:\n{self.log.read_text()[-2000:]}"
        self.process.send_signal(number)

    def stop(self, number):
        self.send(number)
        self.process.wait(timeout=120)

    def end(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.kill()
        self.process.wait()
        if self.front is not None:
            self.front.close()

    def says(self, words):
        return words in self.log.read_text()

    def try_metrics(self):
        """None: it does not answer."""
        try:
            with urllib.request.urlopen(f"{self.page}/metrics", timeout=1) as answer:
                return answer.read().decode()
        except OSError:
            return None

    def counts_ranks(self, job):
        """Processes of the job that live, by what this daemon itself has or is told by the owner."""
        try:
            with urllib.request.urlopen(f"{self.page}/api/v1/job?job={job}", timeout=5) as answer:
                return json.load(answer)["status"]["processes_alive"]
        except OSError:
            return 0

    def holds_lease(self):
        text = self.try_metrics() or ""
        found = re.search(r"^rollcall_fleet_lease_held (\d)", text, re.M)
        return found is not None and found[1] == "1"


class ChaosFleet:
    """url: how a daemon reaches the database at the port of its link; None: directly, by direct_url."""

    def __init__(self, folder, server, count=3, direct_url=None, have_fronts=False):
        self.folder, self.server = folder, server
        self.receiver = Receiver(("127.0.0.1", 0))
        alert = f"--alert=json=http://127.0.0.1:{self.receiver.server.server_address[1]}/"
        self.daemons = {}
        for number in range(1, count + 1):
            link, url = None, direct_url
            if url is None:
                port = free_port()
                link = Link(("127.0.0.1", port), ("127.0.0.1", server.port))
                url = f"postgresql://rollcall@127.0.0.1:{port}/rollcall"
            name = f"daemon-{number}"
            self.daemons[name] = Daemon(name, folder, link, [
                BUILD / "bin" / "rollcalld", f"--hang-after={HANG_AFTER}s", f"--store={url}", alert],
                server.environment, have_fronts)
        try:
            wait_for(self._is_ready)
        except AssertionError:
            self.end()
            raise

    def _is_ready(self):
        # A daemon that knows no other one alerts also without the database.
        know_all = f'rollcall_fleet_daemons{{state="answers"}} {len(self.daemons)}'
        return all(daemon.holds_lease() and know_all in (daemon.try_metrics() or "")
                   for daemon in self.daemons.values())

    @property
    def address(self):
        return ",".join(daemon.address for daemon in self.daemons.values())

    def end(self):
        for daemon in self.daemons.values():
            daemon.end()
        for daemon in self.daemons.values():
            if daemon.link is not None:
                daemon.link.close()
        self.receiver.close()

    def owner(self, job):
        """The daemon that the database names, whether it lives or not."""
        rows = self.server.sql(f"SELECT daemon FROM rollcall.owners WHERE job = '{job}' AND daemon IS NOT NULL")
        return self.daemons[rows[0][0]] if rows else None

    def has_owner(self, job):
        """Whether a daemon has the job that holds its lease and knows its ranks."""
        owner = self.owner(job.name)
        return owner is not None and owner.holds_lease() and owner.counts_ranks(job.name) == job.ranks

    def alerts(self, job=None, status=None):
        """(time, key, body), as they came."""
        return [(when, key, body) for when, key, body in list(self.receiver.taken)
                if job in (None, body["job"]) and status in (None, body["status"])]


class ChaosJob:
    """Ranks that make steps until one of them stops calling, or all end in good order."""

    def __init__(self, fleet, name, ranks=2):
        self.name, self.ranks, self.culprit = name, ranks, None
        self.hung_at = self.ended_at = 0.0
        self.folder = fleet.folder / name
        self.folder.mkdir()
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                [ROLLCALL, "run", "--sim", f"--daemon={fleet.address}", f"--hang-after={HANG_AFTER}s",
                 f"--report-dir={self.folder / 'reports'}", "--", VICTIMS / "ranks", "-n", str(ranks),
                 "--keep-going", "--", VICTIMS / "chaos_rank"],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                env={**os.environ, "ROLLCALL_JOB": name, "CHAOS_DIR": str(self.folder)})

    def hang(self, culprit):
        self.culprit = culprit
        new = self.folder / "new"
        new.write_text("stop_calling\n")
        new.rename(self.folder / f"fault.{culprit}")
        self.hung_at = time.monotonic()

    def finish(self):
        """The end of a healthy job."""
        (self.folder / "end").touch()
        code = self.process.wait(timeout=120)
        assert code == 0, f"{self.name}: {code}\n{(self.folder / 'log').read_text()[-2000:]}"
        self.ended_at = time.monotonic()

    def cancel(self):
        """As a launcher ends a job that hangs."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        self.process.wait(timeout=120)
        self.ended_at = time.monotonic()

    def stood_still(self):
        """The longest time without a step, in seconds, before it was made to hang."""
        longest = 0.0
        for file in self.folder.glob("gaps.*"):
            for line in file.read_text().splitlines():
                begin, end = map(float, line.split())
                longest = max(longest, end - begin)
        return longest


@dataclasses.dataclass
class Counts:
    """What the oracle has counted. `problems`: all that is wrong, in words."""
    hangs: int = 0
    healthy: int = 0
    incidents: int = 0       # confirmed, of the jobs that hang
    firing: int = 0          # by key
    resolved: int = 0        # by key
    right: int = 0           # firing, with the right culprit
    repeated: int = 0        # the same key again, around a fault
    false_alarms: int = 0
    not_judged: int = 0      # healthy, and stood still by themselves
    slowest_alert: float = 0.0
    problems: list = dataclasses.field(default_factory=list)

    def __str__(self):
        return (f"{self.hangs} hangs: {self.incidents} incidents, {self.firing} firing, {self.resolved} "
                f"resolved, {self.right} with the right culprit, {self.repeated} repeated by the same key; "
                f"slowest alert {self.slowest_alert:.1f} s after the fault; {self.healthy} healthy jobs: "
                f"{self.false_alarms} alarms, {self.not_judged} not judged, for they stood still")


def ranks_of(body):
    return {int(rank) for rank in body["ranks"].split(", ") if rank}


def read_incidents(server):
    """By job: (id, state) of the confirmed incidents in the database."""
    by_job = {}
    for job, name, state in server.sql("SELECT job, id, state FROM rollcall.incidents WHERE confirmed <> 0"):
        by_job.setdefault(job, []).append((name, state))
    return by_job


def tell_story(server, alerts):
    """What came when, for a test that fails."""
    began = time.time() - time.monotonic()

    def at(seconds):
        return time.strftime("%H:%M:%S", time.gmtime(seconds))

    lines = [f"{name} {state}: opened {at(int(opened) / 1e9)}, closed {at(int(closed) / 1e9)}, by {daemon}"
             for name, state, opened, closed, daemon in server.sql(
                 "SELECT id, state, opened_ns, closed_ns, daemon FROM rollcall.incidents ORDER BY opened_ns")]
    lines += [f"{at(when + began)} {key} {body['status']}: {body['cause']} by {body['ranks']}"
              for when, key, body in alerts]
    return "\n".join(lines)


def judge(jobs, incidents, alerts, faults):
    """The oracle. faults: times of all that was done to daemons and database. Pure."""
    counts = Counts()
    for job in jobs:
        of_job = incidents.get(job.name, [])
        sent = [alert for alert in alerts if alert[2]["job"] == job.name]
        if job.culprit is None:
            judge_healthy(job, of_job, sent, counts)
        else:
            judge_hang(job, of_job, sent, faults, counts)
    known = {job.name for job in jobs}
    for name in {*incidents, *(body["job"] for _, _, body in alerts)} - known:
        counts.problems.append(f"{name} is no job")
    return counts


def judge_healthy(job, incidents, sent, counts):
    counts.healthy += 1
    if job.stood_still() > STOOD_STILL:
        counts.not_judged += 1
    elif incidents or sent:
        counts.false_alarms += 1
        counts.problems.append(f"{job.name} is healthy: {incidents}, {[key for _, key, _ in sent]}")


def judge_hang(job, incidents, sent, faults, counts):
    counts.hangs += 1
    counts.incidents += len(incidents)
    if len(incidents) != 1:
        counts.problems.append(f"{job.name} has {len(incidents)} incidents: {incidents}")
    elif incidents[0][1] not in ("ended", "resolved"):
        counts.problems.append(f"{job.name} is over, its incident is {incidents[0]}")
    first = {}
    for when, key, body in sent:
        if key not in first:
            first[key] = (when, body)
            continue
        counts.repeated += 1
        if not any(first[key][0] - 1 <= fault <= when for fault in faults):
            counts.problems.append(f"{job.name}: {key} {body['status']} again without a fault")
    for status in ("firing", "resolved"):
        keys = [key for key, (_, body) in first.items() if body["status"] == status]
        setattr(counts, status, getattr(counts, status) + len(keys))
        if len(keys) != 1:
            counts.problems.append(f"{job.name}: {len(keys)} alerts say {status}: {keys}")
    for key, (when, body) in first.items():
        if body["status"] != "firing":
            continue
        counts.slowest_alert = max(counts.slowest_alert, when - job.hung_at)
        if ranks_of(body) == {job.culprit}:
            counts.right += 1
        else:
            counts.problems.append(f"{job.name}: {key} blames {body['ranks']} for {body['cause']}, not {job.culprit}")
        if when < job.hung_at:
            counts.problems.append(f"{job.name}: {key} came before the hang")


@pytest.fixture
def fleet(tmp_path, postgres):
    """Three daemons, each with a link to the database."""
    made = ChaosFleet(tmp_path, postgres)
    yield made
    made.end()
