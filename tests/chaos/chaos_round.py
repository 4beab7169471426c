# SPDX-License-Identifier: Apache-2.0
"""Runs one round: starts the programs, lets the schedule happen to them, and observes."""
import collections
import itertools
import os
import signal
import subprocess
import threading
import time

import oracle
import schedule as schedules
from alert_receiver import Receiver
from cluster import Agent, Daemon, Disk, Job, wait_for
from proxy import Proxy

UP_SECONDS = 60         # for all ranks of the job to be known
LOOK_SECONDS = 0.2
SETTLE_SECONDS = 120    # for a verdict: a restarted daemon waits 30 s for the hosts of a job
HEALTHY_SECONDS = 2 * schedules.HANG_AFTER
QUIET_SECONDS = 2       # without anything new, at the end
CLOSE_SECONDS = 60      # for the end of the incident
numbers = itertools.count(1)


class Observer:
    """Looks at the daemon's incidents, and keeps each state that it has seen."""

    def __init__(self, daemon, job, seen):
        self.daemon, self.job, self.seen = daemon, job, seen
        self.stopped = threading.Event()
        self.thread = threading.Thread(target=self._run)
        self.thread.start()

    def _run(self):
        while not self.stopped.wait(LOOK_SECONDS):
            self.job.collect_ended()
            for incident in self.daemon.incidents() or []:
                self.seen.add(time.monotonic(), incident)

    def close(self):
        self.stopped.set()
        self.thread.join()


class Round:
    def __init__(self, schedule, folder):
        self.schedule, self.folder = schedule, folder
        self.seen = oracle.Observation()
        self.problems = []
        self.hiccup = (0, 0)  # from, to
        self.job = None
        self.turns = collections.defaultdict(threading.Lock)  # by target of a disturbance
        number = next(numbers)
        self.address = f"127.{os.getpid() % 200 + 20}.{number % 250}.1"
        self.closers = []

    def run(self):
        """Returns what the oracle says."""
        try:
            self._start()
            self._disturb()
            self._settle()
            self._end_job()
            self._check_history()
        except (AssertionError, subprocess.SubprocessError) as problem:
            self.problems.append(str(problem))
        finally:
            if self.job:
                self.seen.gap = self.job.longest_gap(self.hiccup)
            for close in reversed(self.closers):
                close()
        self.seen.alerts = self.receiver.taken
        self.seen.kills, self.seen.stops = self.daemon.kills, self.daemon.stops
        self.seen.full = self.disk.full
        return self.problems + oracle.judge(self.schedule, self.seen)

    def _later(self, thing, close):
        self.closers.append(close)
        return thing

    def _start(self):
        def keep(thing, how="close"):
            return self._later(thing, getattr(thing, how))

        hosts = range(self.schedule.hosts)
        self.receiver = keep(Receiver((self.address, 9600)))
        self.disk = keep(Disk(self.folder / "disk"), "end")
        self.daemon = keep(Daemon(self.folder, self.address, self.disk, schedules.HANG_AFTER,
                                  f"http://{self.address}:9600/"), "end")
        self.proxies = [keep(Proxy((self.address, 9500 + host), (self.address, Daemon.PORT)))
                        for host in hosts]
        self.agents = [keep(Agent(self.folder, f"node-{host}", f"{self.address}:{9500 + host}"),
                            "end") for host in hosts]
        self.job = keep(Job(self.folder, [self.agents[self.schedule.host_of(rank)].folder
                                          for rank in range(self.schedule.ranks)]), "kill")
        self.observer = keep(Observer(self.daemon, self.job, self.seen))
        wait_for("all ranks are known", UP_SECONDS, self._is_up)

    def _is_up(self):
        jobs = (self.daemon.try_ask("status") or {"jobs": []})["jobs"]
        return (jobs and jobs[0]["processes_alive"] == self.schedule.ranks and
                [c["members"] for c in jobs[0]["communicators"]].count(self.schedule.ranks) == 1)

    def _disturb(self):
        begun = time.monotonic()

        def thread_at(at, act, what):
            return threading.Thread(target=self._at, args=(begun, at, act, what))

        threads = [thread_at(d.at, self._disturb_by, d) for d in self.schedule.disturbances]
        if self.schedule.fault:
            fault = self.schedule.fault
            threads.append(thread_at(fault.at, self._fail, fault))
        if self.schedule.ending:
            ending = self.schedule.ending
            threads.append(thread_at(ending.at, self._end_early, ending))
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _at(self, begun, at, act, what):
        time.sleep(max(0, begun + at - time.monotonic()))
        try:
            act(what)
        except (AssertionError, OSError, subprocess.SubprocessError) as problem:
            self.problems.append(f"{what}: {problem}")

    def _fail(self, fault):
        self.seen.failed_at = time.monotonic()
        rank = self.job.ranks[fault.rank]
        if fault.kind == "killed":
            rank.stop(signal.SIGKILL)
        elif fault.kind == "frozen":
            rank.send(signal.SIGSTOP)
        elif fault.kind == "hiccup":
            rank.send(signal.SIGSTOP)
            time.sleep(schedules.HICCUP)
            rank.send(signal.SIGCONT)
            self.hiccup = (self.seen.failed_at, time.monotonic())
        elif fault.kind == "host_lost":
            host = self.schedule.host_of(fault.rank)
            self.proxies[host].stalls = True
            self.agents[host].end()
            for lost in self.schedule.culprits:
                self.job.ranks[lost].end()
        else:
            self.job.go_wrong(fault.kind, fault.rank)

    def _end_early(self, ending):
        if ending.kind == "finish":
            self.job.finish()
        else:
            self.job.end()

    def _disturb_by(self, disturbance):
        begin, end = self._ways(disturbance)[disturbance.kind]
        with self.turns[disturbance.target]:  # the end of a daemon may take longer than planned
            begin()
            time.sleep(disturbance.lasts)
            end()

    def _ways(self, d):
        """How each kind of disturbance begins and ends."""
        host = d.index % self.schedule.hosts
        daemon, agent, proxy, receiver = (self.daemon, self.agents[host], self.proxies[host],
                                          self.receiver)
        rank = self.job.ranks[d.index]

        def set_to(thing, name, value):
            return lambda: setattr(thing, name, value)

        def freeze(program):
            return lambda: program.send(signal.SIGSTOP), lambda: program.send(signal.SIGCONT)

        def step(program):
            return lambda: program.clock.step(d.amount), lambda: program.clock.step(0)

        return {
            "kill_daemon": (lambda: daemon.stop(signal.SIGKILL), daemon.start),
            "restart_daemon": (daemon.stop, daemon.start),
            "freeze_daemon": freeze(daemon),
            "kill_agent": (lambda: agent.stop(signal.SIGKILL), agent.start),
            "freeze_agent": freeze(agent),
            "pause_rank": freeze(rank),
            "drop_connection": (set_to(proxy, "drops", True), set_to(proxy, "drops", False)),
            "stall_connection": (set_to(proxy, "stalls", True), set_to(proxy, "stalls", False)),
            "delay_connection": (set_to(proxy, "delay", d.amount), set_to(proxy, "delay", 0)),
            "halve_message": (set_to(proxy, "halves", 2), set_to(proxy, "halves", 0)),
            "fill_disk": (self.disk.fill, self.disk.free),
            "step_clock_of_daemon": step(daemon),
            "step_clock_of_agent": step(agent),
            "refuse_alerts": (set_to(receiver, "refuses", True),
                              set_to(receiver, "refuses", False)),
        }

    def _settle(self):
        if not self.schedule.is_for_good:
            time.sleep(HEALTHY_SECONDS)
            self._await_end_of_hiccup()
            return
        until = time.monotonic() + SETTLE_SECONDS
        while time.monotonic() < until and not self._is_named():
            time.sleep(LOOK_SECONDS)
        self.seen.named_after = time.monotonic() - self.seen.failed_at
        time.sleep(QUIET_SECONDS)

    def _await_end_of_hiccup(self):
        if self.schedule.fault is None or not (self.daemon.incidents() or self.receiver.taken):
            return
        wait_for("the hiccup is resolved", SETTLE_SECONDS, self._is_resolved)

    def _is_resolved(self):
        incidents = self.daemon.incidents()
        alerts = [body["status"] for _, _, body in self.receiver.taken]
        return (incidents is not None and all(i["state"] == "resolved" for i in incidents) and
                alerts.count("firing") == alerts.count("resolved"))

    def _is_named(self):
        """Whether the incident, its alert and its report have come."""
        incidents = self.daemon.incidents() or []
        is_alerted = any(body["status"] == "firing" for _, _, body in self.receiver.taken)
        return (is_alerted and self.daemon.reports() and
                any(oracle.is_right(self.schedule, incident) for incident in incidents))

    def _end_job(self):
        self.seen.settled = self.daemon.incidents()
        assert self.seen.settled is not None, "the daemon does not answer"
        self._bring_back_lost_host()
        for program in [self.daemon, *self.agents]:
            assert program.is_alive(), f"{program.name} has ended by itself"
        if self.schedule.is_for_good:
            self.job.end()
            if self.seen.settled:
                wait_for("the incident ends, with its alert", CLOSE_SECONDS, self._is_closed)
        elif self.schedule.ending is None:
            self.job.finish()
        self.seen.reports = self.daemon.reports()
        time.sleep(QUIET_SECONDS)

    def _bring_back_lost_host(self):
        """Nobody knows how the ranks of a lost host are. So its job ends when the host is back."""
        fault = self.schedule.fault
        if fault is None or fault.kind != "host_lost":
            return
        host = self.schedule.host_of(fault.rank)
        self.proxies[host].stalls = False
        self.agents[host].start()

    def _is_closed(self):
        incidents = self.daemon.incidents()
        return (incidents and all(i["state"] in ("ended", "resolved") for i in incidents) and
                any(body["status"] == "resolved" for _, _, body in self.receiver.taken))

    def _check_history(self):
        self.daemon.stop()
        self.daemon.start()
        self.seen.history = wait_for("the daemon starts again", UP_SECONDS, lambda: (
            None if (incidents := self.daemon.incidents()) is None else [None, *incidents]))[1:]
        time.sleep(QUIET_SECONDS)
