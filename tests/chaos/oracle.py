# SPDX-License-Identifier: Apache-2.0
"""Judges what Rollcall said in a round by what the job did. Pure."""
import dataclasses

import schedule as schedules

# A job that stood still for longer was hung, if only for a while: a loaded machine does that.
STOOD_STILL_SECONDS = 0.7 * schedules.HANG_AFTER
# The daemon suspects a wait of half of HANG_AFTER. A healthy job that a loaded machine holds up for
# nearly as long does wait: a suspicion may say so.
SLOW_SECONDS = 0.8 * schedules.HANG_AFTER / 2
# A SIGKILL between a delivery and its mark in the history repeats the alert, under the same key.
MARK_SECONDS = 3
MOST_UPDATES = 4
SILENT_SECONDS = 10    # without a tick: the daemon may then call a host lost, as likely at most
RECONNECT_SECONDS = 5


@dataclasses.dataclass
class Observation:
    states: list = dataclasses.field(default_factory=list)  # (time, incident), each state once
    alerts: list = dataclasses.field(default_factory=list)  # (time, key, body)
    kills: list = dataclasses.field(default_factory=list)   # times at which the daemon got SIGKILL
    stops: list = dataclasses.field(default_factory=list)   # and SIGTERM
    full: list = dataclasses.field(default_factory=list)    # (from, to): when the disk was full
    settled: list = dataclasses.field(default_factory=list)  # incidents when all was over
    reports: list = dataclasses.field(default_factory=list)  # incidents as the reports have them
    history: list = dataclasses.field(default_factory=list)  # incidents of the next daemon
    gap: float = 0  # seconds for which the job stood still at most, without its fault
    failed_at: float = 0
    named_after: float = 0  # seconds from the fault to the right verdict

    def add(self, time, incident):
        last = next((i for _, i in reversed(self.states) if i["id"] == incident["id"]), None)
        if last is None or describe(last) != describe(incident):
            self.states.append((time, incident))


def culprits_of(verdict):
    return {culprit["rank"] for culprit in verdict.get("culprits", [])}


def describe(incident):
    root = incident["verdicts"][0] if incident.get("verdicts") else {}
    return (f"{incident['id']} {incident['state']}: {root.get('cause')} by "
            f"{sorted(culprits_of(root))}, {root.get('certainty')}")


def is_right_verdict(schedule, verdict):
    if schedule.fault is None or culprits_of(verdict) != schedule.culprits:
        return False
    return (verdict["cause"] in schedules.FAULTS[schedule.fault.kind] or
            names_host_unheard_since_restart(schedule, verdict))


def names_host_unheard_since_restart(schedule, verdict):
    """A daemon that was restarted after a host was lost has never heard of that host's ranks."""
    if schedule.fault.kind != "host_lost" or verdict["cause"] != "missing_rank":
        return False
    line = (f"node-{schedule.host_of(schedule.fault.rank)} has not reported since the daemon was "
            "restarted")
    return verdict["certainty"] != "certain" and line in verdict.get("missing_evidence", [])


def was_confirmed(incident):
    return bool(incident.get("confirmed_at")) or incident["state"] == "confirmed"


def is_right(schedule, incident):
    states = ("confirmed",) if schedule.is_for_good else ("confirmed", "resolved")
    root = incident["verdicts"][0]
    # The host of the culprit may come back after the hiccup only.
    is_fair = (may_be_unseen(schedule) and root["certainty"] != "certain" and
               schedule.culprits < culprits_of(root))
    return (incident["state"] in states and was_confirmed(incident) and
            (is_fair or is_right_verdict(schedule, root)))


def may_be_unseen(schedule):
    return schedule.fault is not None and not schedule.must_be_named


def find_wrong_certainty(schedule, incidents, gap=0):
    """`certain` is a promise, at any time. A suspicion may name a rank that pauses for a moment, or
    one that the others of a healthy job did wait for: the job stood still for `gap` seconds."""
    paused = {d.index for d in schedule.disturbances if d.kind == "pause_rank"}
    for incident in incidents:
        for verdict in incident.get("verdicts", []):
            if verdict.get("certainty") != "certain":
                continue
            if is_right_verdict(schedule, verdict):
                continue
            if not was_confirmed(incident) and culprits_of(verdict) <= paused:
                continue
            if not was_confirmed(incident) and schedule.fault is None and gap >= SLOW_SECONDS:
                continue
            # Ranks that wait for the culprit are absent elsewhere.
            root = incident["verdicts"][0]
            if verdict.get("is_consequence") and is_right_verdict(schedule, root):
                continue
            yield (f"wrong certain: {verdict['cause']} by {sorted(culprits_of(verdict))}: " +
                   describe(incident))


def find_false_alarms(schedule, seen):
    if schedule.fault is not None:
        return
    for incident in [*(i for _, i in seen.states), *seen.reports, *seen.history]:
        if was_confirmed(incident):
            yield "false alarm: " + describe(incident)
    for _, key, body in seen.alerts:
        yield f"false alarm: alert {key} {body['status']}: {body['summary']}"


def find_losses(schedule, seen):
    if schedule.fault is None:
        return
    named = [i for i in seen.settled if is_right(schedule, i)]
    if not named:
        if schedule.must_be_named or any(was_confirmed(i) for i in seen.settled):
            yield f"lost incident: none is right, but {[describe(i) for i in seen.settled]}"
        return
    where = {"the history": seen.history, "the reports": seen.reports}
    for place, incidents in where.items():
        if named[0]["id"] not in [incident["id"] for incident in incidents]:
            yield f"lost incident: {named[0]['id']} is not in {place}"
    for incident in seen.history:
        if was_confirmed(incident) and incident["state"] not in ("ended", "resolved"):
            yield "lost end: " + describe(incident)


def find_double_incidents(schedule, seen):
    if schedule.fault is None:
        return
    everything = [*(i for _, i in seen.states), *seen.reports, *seen.history]
    ids = sorted({incident["id"] for incident in everything if was_confirmed(incident)})
    if len(ids) > 1:
        yield f"double incident: {ids}"
    for name, incidents in {"the history": seen.history, "the reports": seen.reports}.items():
        confirmed = [i["id"] for i in incidents if was_confirmed(i)]
        if len(confirmed) > len(set(confirmed)):
            yield f"double incident in {name}: {confirmed}"


def is_excused(seen, first, second):
    """Whether the daemon that sent the alert ended before it could record the delivery."""
    ends = [end for end in [*seen.kills, *seen.stops] if first - 0.1 <= end <= second]
    return (any(end in seen.kills and end <= first + MARK_SECONDS for end in ends) or
            any(begin <= end <= free for end in ends for begin, free in seen.full))


def was_out_of_reach(schedule, host):
    """Whether the daemon may have called the host lost."""
    outages = [d.lasts + RECONNECT_SECONDS for d in schedule.disturbances
               if d.target in (("agent", host), ("network", host))]
    return sum(outages) >= SILENT_SECONDS


def is_right_alert(schedule, body):
    causes = schedules.FAULTS[schedule.fault.kind]
    if schedule.fault.kind == "host_lost":
        causes = {*causes, "missing_rank"}  # see names_host_unheard_since_restart
    return body["cause"] in causes and ranks_of(body) == schedule.culprits


def ranks_of(body):
    return {int(rank) for rank in body["ranks"].split(", ") if rank}


def is_weak_but_fair(schedule, body):
    """The first alert may say what was known while a part of the hosts was out of reach: never
    `certain`, and with the culprit among others; or that a host is lost that was out of reach."""
    if body["certainty"] == "certain":
        return False
    lost = [set(schedule.ranks_of(host)) for host in range(schedule.hosts)
            if was_out_of_reach(schedule, host)]
    return schedule.culprits < ranks_of(body) or (body["cause"] == "host_lost" and
                                                  ranks_of(body) in lost)


def find_repeated_alerts(seen):
    first = {}  # time by key
    for time, key, body in seen.alerts:
        if key not in first:
            first[key] = time
        elif not is_excused(seen, first[key], time):
            yield f"double alert: {key} {body['status']} again after {time - first[key]:.1f} s"


def find_wrong_alerts(schedule, seen):
    if schedule.fault is None:
        return
    yield from find_repeated_alerts(seen)
    alerts = {key: body for _, key, body in reversed(seen.alerts)}
    by_status = {status: [key for key, body in alerts.items() if body["status"] == status]
                 for status in ("firing", "updated", "resolved")}
    hangs = 1 if schedule.must_be_named or alerts else 0
    if len(by_status["firing"]) != hangs:
        yield f"alerts: {len(by_status['firing'])} say that the job hangs: {by_status['firing']}"
    if len(by_status["resolved"]) != hangs:
        yield (f"alerts: {len(by_status['resolved'])} say that the hang is over: "
               f"{by_status['resolved']}")
    if len(by_status["updated"]) > MOST_UPDATES:
        yield f"alerts: {len(by_status['updated'])} updates"
    for key, body in alerts.items():
        is_first = body["status"] == "firing" or may_be_unseen(schedule)
        if not (is_right_alert(schedule, body) or
                (is_first and is_weak_but_fair(schedule, body))):
            yield (f"wrong alert: {key} {body['status']}: {body['cause']} by {body['ranks']}, "
                   f"{body['certainty']}")


def judge(schedule, seen):
    """All that is wrong, in words. Nothing where the job itself stood still for too long."""
    everything = [*(i for _, i in seen.states), *seen.reports, *seen.history]
    problems = [*find_wrong_certainty(schedule, everything, seen.gap),
                *find_false_alarms(schedule, seen), *find_losses(schedule, seen),
                *find_double_incidents(schedule, seen), *find_wrong_alerts(schedule, seen)]
    return list(dict.fromkeys(problems))


def stood_still(seen):
    return seen.gap > STOOD_STILL_SECONDS
