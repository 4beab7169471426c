# SPDX-License-Identifier: Apache-2.0
"""The oracle finds each kind of mistake, and a schedule is a function of its seed."""
import copy

import oracle
import pytest
import schedule as schedules
from schedule import Disturbance, Fault, Schedule

FAULTY = Schedule(0, 2, 4, Fault("stop_calling", 3, 1), ())
HEALTHY = Schedule(0, 2, 4, None, (Disturbance("pause_rank", 2, 1, 1),))


def incident(state="ended", number=1, **changes):
    verdict = {"cause": "missing_rank", "certainty": "certain", "culprits": [{"rank": 3}],
               **changes}
    return {"id": f"chaos-{number}", "state": state, "confirmed_at": "2026-01-01T00:00:00Z",
            "verdicts": [verdict]}


def alert(status, sequence, at, **changes):
    return at, f"chaos-1/{sequence}", {"status": status, "ranks": "3", "cause": "missing_rank",
                                       "certainty": "certain", "summary": "", **changes}


def suspicion(rank):
    return {**incident("suspected", culprits=[{"rank": rank}]), "confirmed_at": None}


def right():
    return oracle.Observation(
        states=[(5, incident("confirmed"))], settled=[incident("confirmed")],
        reports=[incident("confirmed")], history=[incident()],
        alerts=[alert("firing", 1, 5), alert("resolved", 2, 9)])


def test_a_right_observation_has_no_problem():
    assert oracle.judge(FAULTY, right()) == []
    assert oracle.judge(HEALTHY, oracle.Observation()) == []


@pytest.mark.parametrize("change, problem", [
    (dict(states=[(5, incident("suspected", culprits=[{"rank": 1}]))]), "wrong certain"),
    (dict(states=[(5, incident("confirmed", cause="rank_died"))]), "wrong certain"),
    (dict(settled=[]), "lost incident: none is right"),
    (dict(settled=[incident("confirmed", culprits=[{"rank": 1}], certainty="likely")]),
     "lost incident: none is right"),
    (dict(history=[]), "lost incident: chaos-1 is not in the history"),
    (dict(reports=[]), "lost incident: chaos-1 is not in the reports"),
    (dict(history=[incident("confirmed")]), "lost end"),
    (dict(states=[(5, incident("confirmed")), (7, incident("confirmed", number=2))]),
     "double incident: ['chaos-1', 'chaos-2']"),
    (dict(history=[incident(), incident()]), "double incident in the history"),
    (dict(alerts=[]), "alerts: 0 say that the job hangs"),
    (dict(alerts=[alert("firing", 1, 5)]), "alerts: 0 say that the hang is over"),
    (dict(alerts=[alert("firing", 1, 5), alert("firing", 2, 6), alert("resolved", 3, 9)]),
     "alerts: 2 say that the job hangs"),
    (dict(alerts=[alert("firing", 1, 5), alert("firing", 1, 6), alert("resolved", 2, 9)]),
     "double alert: chaos-1/1"),
    (dict(alerts=[alert("firing", 1, 5, ranks="1"), alert("resolved", 2, 9)]), "wrong alert"),
    (dict(alerts=[*(alert("updated", n, 5) for n in range(3, 9)), *right().alerts]), "6 updates"),
])
def test_the_oracle_finds_a_mistake(change, problem):
    seen = right()
    for name, value in change.items():
        setattr(seen, name, copy.deepcopy(value))
    assert [found for found in oracle.judge(FAULTY, seen) if problem in found]


def test_a_consequence_may_name_ranks_that_wait_for_the_culprit_if_the_root_is_right():
    seen = right()
    hang = incident("confirmed")
    consequence = {"cause": "missing_rank", "certainty": "certain", "is_consequence": True,
                   "culprits": [{"rank": 1}, {"rank": 3}]}
    hang["verdicts"].append(consequence)
    seen.states = [(5, hang)]
    assert oracle.judge(FAULTY, seen) == []
    hang["verdicts"][0]["culprits"] = [{"rank": 1}]
    assert len(oracle.judge(FAULTY, seen)) == 2
    hang["verdicts"][0]["culprits"] = [{"rank": 3}]
    consequence["is_consequence"] = False
    assert "wrong certain" in oracle.judge(FAULTY, seen)[0]


def test_an_alert_may_come_again_when_the_daemon_was_killed_before_it_marked_it():
    seen = right()
    seen.alerts.append(alert("firing", 1, 12))
    seen.kills = [5.5]
    assert oracle.judge(FAULTY, seen) == []
    seen.kills = [11]
    assert [found for found in oracle.judge(FAULTY, seen) if "double alert" in found]


def test_an_alert_may_come_again_when_the_daemon_ended_on_a_full_disk():
    seen = right()
    seen.alerts.append(alert("firing", 1, 12))
    seen.stops = [8]
    assert [found for found in oracle.judge(FAULTY, seen) if "double alert" in found]
    seen.full = [(4, 9)]
    assert oracle.judge(FAULTY, seen) == []
    seen.full = [(4, 7)]
    assert [found for found in oracle.judge(FAULTY, seen) if "double alert" in found]


def test_the_first_alert_may_blame_more_ranks_but_the_last_may_not():
    seen = right()
    seen.alerts[0] = alert("firing", 1, 5, ranks="1, 3", certainty="likely")
    assert oracle.judge(FAULTY, seen) == []
    seen.alerts[0] = alert("firing", 1, 5, ranks="1, 3")
    assert "wrong alert" in oracle.judge(FAULTY, seen)[0]
    seen.alerts = [right().alerts[0], alert("resolved", 2, 9, ranks="1, 3", certainty="likely")]
    assert "wrong alert" in oracle.judge(FAULTY, seen)[0]


def test_the_first_alert_may_call_a_host_lost_only_if_its_agent_was_out_of_reach():
    seen = right()
    seen.alerts[0] = alert("firing", 1, 5, ranks="0, 2", cause="host_lost", certainty="likely")
    assert "wrong alert" in oracle.judge(FAULTY, seen)[0]
    lasts = {8: [], 2: ["wrong alert"]}
    for seconds, problems in lasts.items():
        schedule = Schedule(0, 2, 4, FAULTY.fault, (Disturbance("freeze_agent", 0, 1, seconds),))
        assert [p.partition(":")[0] for p in oracle.judge(schedule, seen)] == problems


def test_a_restarted_daemon_may_name_the_ranks_of_a_lost_host_as_missing():
    lost = Schedule(0, 2, 4, Fault("host_lost", 3, 1), ())
    verdict = {"cause": "missing_rank", "certainty": "possible",
               "culprits": [{"rank": 1}, {"rank": 3}],
               "missing_evidence": ["node-1 has not reported since the daemon was restarted"]}
    assert oracle.is_right_verdict(lost, verdict)
    assert not oracle.is_right_verdict(lost, {**verdict, "certainty": "certain"})
    assert not oracle.is_right_verdict(lost, {**verdict, "missing_evidence": []})
    assert not oracle.is_right_verdict(FAULTY, {**verdict, "culprits": [{"rank": 1}]})


def test_a_healthy_job_has_no_alarm_but_suspicions_of_ranks_that_pause():
    seen = oracle.Observation(states=[(5, suspicion(2))])
    assert oracle.judge(HEALTHY, seen) == []
    seen = oracle.Observation(states=[(5, suspicion(1))])
    assert "wrong certain" in oracle.judge(HEALTHY, seen)[0]
    seen = oracle.Observation(states=[(5, suspicion(1))], gap=oracle.SLOW_SECONDS)
    assert oracle.judge(HEALTHY, seen) == [], "the others did wait for it"
    seen = oracle.Observation(states=[(5, incident("confirmed"))], gap=oracle.SLOW_SECONDS)
    assert "wrong certain" in oracle.judge(HEALTHY, seen)[0]
    seen = oracle.Observation(states=[(5, incident("confirmed", certainty="likely"))])
    assert "false alarm" in oracle.judge(HEALTHY, seen)[0]
    seen = oracle.Observation(alerts=[alert("firing", 1, 5)])
    assert "false alarm" in oracle.judge(HEALTHY, seen)[0]


def test_a_hiccup_may_pass_unseen_while_the_daemon_is_away_only():
    hiccup = Schedule(0, 2, 4, Fault("hiccup", 3, 1), ())
    nothing = oracle.Observation()
    assert [p.partition(":")[0] for p in oracle.judge(hiccup, nothing)] == [
        "lost incident", "alerts", "alerts"]
    away = Schedule(0, 2, 4, hiccup.fault, (Disturbance("kill_daemon", 0, 1, 2),))
    assert oracle.judge(away, nothing) == []
    seen = right()
    seen.settled = seen.history = [incident("resolved")]
    assert oracle.judge(hiccup, seen) == oracle.judge(away, seen) == []
    host = dict(culprits=[{"rank": 1}, {"rank": 3}], certainty="likely")
    unheard = right()
    unheard.states, unheard.reports = [(5, incident("confirmed", **host))], []
    unheard.settled = unheard.history = unheard.reports = [incident("resolved", **host)]
    unheard.alerts = [alert(status, n, 5, ranks="1, 3", certainty="likely")
                      for n, status in enumerate(("firing", "resolved"))]
    assert oracle.judge(away, unheard) == []
    assert oracle.judge(hiccup, unheard) != []
    seen.alerts.pop()
    assert "alerts: 0 say that the hang is over" in oracle.judge(away, seen)[0]


def test_a_schedule_is_a_function_of_its_seed():
    assert schedules.make(7) == schedules.make(7)
    assert schedules.make(7) != schedules.make(8)


def test_two_hundred_schedules_contain_every_fault_and_every_disturbance():
    made = [schedules.make(seed) for seed in range(1, 201)]
    assert {s.fault.kind for s in made if s.fault} == set(schedules.FAULTS)
    assert {d.kind for s in made for d in s.disturbances} == set(schedules.DISTURBANCES)
    assert {s.ending.kind for s in made if s.ending} == set(schedules.ENDINGS)
    assert any(s.fault is None and s.ending is None for s in made)
