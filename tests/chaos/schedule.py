# SPDX-License-Identifier: Apache-2.0
"""What happens in one round, and when: a pure function of the seed. Times are seconds since the job
is up."""
import dataclasses
import random

HANG_AFTER = 3
LAST_START = 6      # of a disturbance, or of the fault
LONGEST = 8         # disturbance
SHORT_PAUSE = 1     # of a rank: much less than HANG_AFTER, so the job is slow and not hung
HICCUP = 2.5 * HANG_AFTER  # of a rank: long enough for an incident, which then resolves
CLOCK_STEPS = (-86400, -90, -5, 5, 90, 86400)

# What the job does wrong, and the causes that name it.
FAULTS = {
    "stop_calling": {"missing_rank"},
    "exit": {"rank_exited"},
    "killed": {"rank_died"},
    "frozen": {"missing_rank", "stalled_in_flight", "blocked_before_start"},
    "other_operation": {"operation_mismatch"},
    "other_count": {"argument_mismatch"},
    "host_lost": {"host_lost"},
    "hiccup": {"missing_rank", "stalled_in_flight", "blocked_before_start"},
}
# How a healthy job ends before the disturbances do: by itself, or by SIGTERM to all ranks.
ENDINGS = ("finish", "cancel")

# What disturbs Rollcall, and what it disturbs.
DISTURBANCES = {
    "kill_daemon": "daemon",          # SIGKILL; a new daemon after a while
    "restart_daemon": "daemon",       # SIGTERM; a new daemon after a while
    "freeze_daemon": "daemon",        # SIGSTOP, then SIGCONT
    "kill_agent": "agent",
    "freeze_agent": "agent",
    "drop_connection": "network",     # closed, and closed again for a while
    "delay_connection": "network",
    "halve_message": "network",       # half of a message arrives, then the connection ends
    "stall_connection": "network",    # open, and nothing passes
    "fill_disk": "disk",
    "step_clock_of_daemon": "clock of the daemon",
    "step_clock_of_agent": "clock",
    "refuse_alerts": "receiver",      # of alerts: it fails
    "pause_rank": "rank",             # SIGSTOP, soon followed by SIGCONT
}
OF_A_HOST = {"agent", "network", "clock"}


@dataclasses.dataclass(frozen=True)
class Fault:
    kind: str
    rank: int
    at: float


@dataclasses.dataclass(frozen=True)
class Ending:
    kind: str
    at: float


@dataclasses.dataclass(frozen=True)
class Disturbance:
    kind: str
    index: int  # of a host or a rank; 0 where there is only one
    at: float
    lasts: float
    amount: float = 0  # seconds by which a clock steps, or of delay

    @property
    def target(self):
        return DISTURBANCES[self.kind], self.index

    @property
    def end(self):
        return self.at + self.lasts

    def meets(self, other):
        return self.target == other.target and self.at <= other.end and other.at <= self.end


@dataclasses.dataclass(frozen=True)
class Schedule:
    seed: int
    hosts: int
    ranks: int
    fault: Fault | None
    disturbances: tuple
    ending: Ending | None = None  # nothing: the job lives until all is over

    def host_of(self, rank):
        return rank % self.hosts

    def ranks_of(self, host):
        return [rank for rank in range(self.ranks) if self.host_of(rank) == host]

    @property
    def culprits(self):
        if self.fault is None:
            return set()
        if self.fault.kind == "host_lost":
            return set(self.ranks_of(self.host_of(self.fault.rank)))
        return {self.fault.rank}

    @property
    def is_for_good(self):
        return self.fault is not None and self.fault.kind != "hiccup"

    @property
    def must_be_named(self):
        """Nobody sees a hiccup while the daemon or an agent is away."""
        is_seen = all(d.target[0] not in ("daemon", "agent", "network") for d in self.disturbances)
        return self.is_for_good or (self.fault is not None and is_seen)

    def __str__(self):
        lines = [f"seed {self.seed}: {self.ranks} ranks on {self.hosts} hosts"]
        if self.fault:
            lines.append(f"  {self.fault.at:5.2f} s  the fault: {self.fault.kind} of rank "
                         f"{self.fault.rank} (host {self.host_of(self.fault.rank)})")
        if self.ending:
            lines.append(f"  {self.ending.at:5.2f} s  the job ends: {self.ending.kind}")
        for d in self.disturbances:
            lines.append(f"  {d.at:5.2f} s  {d.kind} {d.index} for {d.lasts:.2f} s"
                         f"{f', amount {d.amount:g}' if d.amount else ''}")
        return "\n".join(lines)


def make_disturbance(chance, hosts, ranks):
    kind = chance.choice(sorted(DISTURBANCES))
    target = DISTURBANCES[kind]
    index = chance.randrange(ranks if target == "rank" else hosts)
    at, lasts = chance.uniform(0, LAST_START), chance.uniform(0.3, LONGEST)
    amount = 0
    if kind.startswith("step_clock"):
        amount = chance.choice(CLOCK_STEPS)
    elif kind == "delay_connection":
        amount = chance.uniform(0.2, 1.5)
    elif kind == "pause_rank":
        lasts = chance.uniform(0.3, SHORT_PAUSE)
    return Disturbance(kind, index if target in OF_A_HOST or target == "rank" else 0, at, lasts,
                       amount)


def would_undo(wanted, schedule):
    """Whether it would continue a frozen rank, start the agent of a lost host, or pause a rank that
    has ended."""
    fault = schedule.fault
    if wanted.kind == "pause_rank":
        return wanted.index in schedule.culprits or schedule.ending is not None
    return (fault is not None and fault.kind == "host_lost" and wanted.target[0] in OF_A_HOST and
            wanted.index == schedule.host_of(fault.rank))


def make(seed):
    chance = random.Random(seed)
    hosts = chance.choice((2, 3))
    ranks = chance.randrange(2 * hosts, 9)
    fault = ending = None
    if chance.random() < 0.6:
        fault = Fault(chance.choice(sorted(FAULTS)), chance.randrange(ranks),
                      chance.uniform(0.5, LAST_START))
    elif chance.random() < 0.5:
        ending = Ending(chance.choice(ENDINGS), chance.uniform(0.5, LAST_START))
    schedule = Schedule(seed, hosts, ranks, fault, (), ending)
    for _ in range(chance.randint(2, 5)):
        wanted = make_disturbance(chance, hosts, ranks)
        if (would_undo(wanted, schedule) or
                any(wanted.meets(other) for other in schedule.disturbances)):
            continue
        disturbances = sorted([*schedule.disturbances, wanted], key=lambda d: d.at)
        schedule = dataclasses.replace(schedule, disturbances=tuple(disturbances))
    return schedule
