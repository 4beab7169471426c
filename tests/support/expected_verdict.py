# SPDX-License-Identifier: Apache-2.0
"""What Rollcall must say about a hang, as the row of a table, and what is wrong with its verdict."""
import dataclasses
import re

import pytest

CERTAINTIES = ["possible", "likely", "certain"]


@dataclasses.dataclass(frozen=True)
class Expected:
    program: str
    causes: tuple  # one of these; with "" among them it is also right to open no incident
    culprits: tuple  # their ranks; None: see `innocent`
    advice: tuple = ()  # the pieces of which one must come first; (): any
    innocent: tuple = ()  # ranks of which none may be a culprit
    most: str = "certain"  # the highest certainty
    least: str = "possible"  # the lowest; where that is higher than `most`, `most` counts
    divergence: str = ""  # where it must have one
    says: tuple = ()  # regular expressions that the sentence holds
    waits: str = ""  # one that all places of waiting ranks hold
    advises: str = ""  # one that the first advice holds
    never: tuple = ()  # those that neither the sentence nor any advice holds
    ranks: int = 4
    seconds: int = 40  # in which --on-hang=abort has ended the job; 0 if the job must end well
    defect: str = ""  # what is wrong today; the test fails once nothing is
    by_chance: bool = False  # the defect does not show in each run


def faults(expected, incidents):
    """All that is wrong with the incidents of a job, one line each."""
    if not incidents and "" in expected.causes:
        return []
    if len(incidents) != 1:
        return [f"{len(incidents)} incidents"]
    verdict = incidents[0]["verdicts"][0]
    return [*_faults_of_blame(expected, verdict), *_faults_of_words(expected, verdict)]


def _faults_of_blame(expected, verdict):
    found = []
    if verdict["cause"] not in expected.causes:
        found.append(f"cause {verdict['cause']}, not {expected.causes}")
    culprits = tuple(sorted(culprit["rank"] for culprit in verdict["culprits"]))
    if expected.culprits is None:
        found += [f"rank {rank} is innocent" for rank in culprits if rank in expected.innocent]
    elif culprits != expected.culprits:
        found.append(f"culprits {culprits}, not {expected.culprits}")
    if CERTAINTIES.index(verdict["certainty"]) > CERTAINTIES.index(expected.most):
        found.append(f"{verdict['certainty']}, at most {expected.most}")
    least = min(expected.least, expected.most, key=CERTAINTIES.index)
    if CERTAINTIES.index(verdict["certainty"]) < CERTAINTIES.index(least) and not has_certainty(verdict, least):
        found.append(f"{verdict['certainty']}, at least {least}: {verdict['missing_evidence']}")
    if expected.divergence and verdict["divergence"] != expected.divergence:
        found.append(f"divergence {verdict['divergence']!r}, not {expected.divergence!r}")
    first = first_advice(verdict)
    if expected.advice and first not in expected.advice:
        found.append(f"first advice {first!r}, not {expected.advice}")
    return found


def _faults_of_words(expected, verdict):
    found = []
    sentence, advice = verdict["summary"], [piece["text"] for piece in verdict["advice"]]
    for pattern in expected.says:
        if not re.search(pattern, sentence):
            found.append(f"the sentence lacks {pattern!r}")
    for pattern in expected.never:
        found += [f"{pattern!r} is said: {text}" for text in (sentence, *advice) if re.search(pattern, text)]
    if expected.advises and not re.search(expected.advises, "".join(advice[:1])):
        found.append(f"the first advice lacks {expected.advises!r}")
    places = [place["at"] for place in verdict["waiting_at"]]
    if expected.waits and not (places and all(re.search(expected.waits, at) for at in places)):
        found.append(f"waiting at {places}, not {expected.waits!r}")
    return found


def has_certainty(verdict, expected):
    """Whether it is that, but for what this machine takes: no wait is certain where tasks wait for a CPU."""
    starved = any("tasks wait for a CPU" in line for line in verdict["missing_evidence"])
    least = "likely" if starved and expected == "certain" else expected
    return verdict["certainty"] in (expected, least)


def misplaced(lines, verdict):
    """The first culprit that stands at none of these lines; "" if there is none."""
    for culprit in verdict["culprits"]:
        if not any(re.search(rf"(^|/){line} in ", culprit["at"]) for line in lines):
            return f"at {culprit['at']!r}, not {lines}: {verdict['summary']}"
    return ""


def first_advice(verdict):
    return ([piece["id"] for piece in verdict["advice"]] or [""])[0]


def told_verdict(incidents):
    """What is told of a job, for the counts of verdict_scores.py. Where nothing is told, all of it is wrong."""
    nothing = {"cause": "", "culprits": [], "summary": "nothing is said", "advice": [], "waiting_at": []}
    return incidents[0]["verdicts"][0] if incidents else nothing


def scored_advice(expected, incidents):
    """The value of the part "first advice". Silence about a hang is a miss, also where the table allows it."""
    verdict = told_verdict(incidents)
    first = first_advice(verdict)
    is_rightly_silent = not incidents and "" in expected.causes and expected.seconds == 0
    return expected.program, first, first in expected.advice or is_rightly_silent, verdict["summary"]


def decide(expected, found, told):
    """Passes, fails or xfails the test. found: what is wrong. told: what Rollcall said."""
    words = "\n".join([*found, told])
    if found and expected.defect:
        pytest.xfail(f"{expected.defect}\n{words}")
    assert not found, words
    assert not expected.defect or expected.by_chance, "nothing is wrong any more: take the defect out of the table"
