# SPDX-License-Identifier: Apache-2.0
"""Whose hang it is: on-hang and watch-step act on no job because somebody named his own like it. With
programs in place of Slurm's, which say what a test lets them say."""
import importlib.machinery
import importlib.util
import json
import os
import re
import subprocess

import pytest
from cluster import SLURM

OTHER = 4242  # a user who is not the job's
JOB = {"i": "4711", "T": "RUNNING", "S": "2026-11-26T03:00:00", "P": "usual", "U": "1000", "N": "n[1-2]",
       "j": "train", "k": ""}
ALL = "on-hang: comment drain requeue cancel\ndrain-causes: missing_rank\n"
# Prints the fields of job.json that --format= asks for, as squeue and sinfo do; notes what would change something.
FAKE = """\
#!/usr/bin/python3 -IS
import json, os, re, sys
here = os.path.dirname(os.path.abspath(__file__))
facts = json.load(open(here + "/facts.json"))
name, arguments = os.path.basename(sys.argv[0]), sys.argv[1:]
form = "".join(a[9:] for a in arguments if a.startswith("--format="))
if name == "squeue" and "--steps" in arguments:
    print("\\n".join(facts["steps"]))
elif name == "squeue":
    print(re.sub("%(.)", lambda found: facts["job"][found.group(1)], form))
elif name == "sinfo":
    for node, host in facts["hosts"].items():
        print(form.replace("%N", node).replace("%n", host).replace("%t", "idle").replace("%E", "none"))
elif arguments[:2] == ["show", "hostnames"]:
    print("\\n".join(facts["hosts"]))
elif "show" in arguments:
    print("JobId=4711 Requeue=1 Restarts=0 BatchFlag=1 x")
else:
    open(here + "/done", "a").write(" ".join([name] + arguments) + "\\n")
"""


class Slurm:
    """Programs of Slurm that know one job, 4711, of the user 1000, on the nodes n1 and n2."""

    def __init__(self, folder):
        self.folder = folder
        folder.mkdir()
        for name in ("squeue", "sinfo", "scontrol", "scancel"):
            (folder / name).write_text(FAKE)
            (folder / name).chmod(0o755)
        self.set()

    def set(self, hosts=("n1", "n2"), steps=("4711.0",), **job):
        hosts = hosts if isinstance(hosts, dict) else {name: name for name in hosts}
        (self.folder / "facts.json").write_text(json.dumps({"job": {**JOB, **job}, "hosts": hosts, "steps": steps}))

    def done(self):
        """What was done to the job or a node: first words of the commands."""
        path = self.folder / "done"
        lines = path.read_text().splitlines() if path.exists() else []
        return [re.sub(r" (comment|reason)=.*", r" \1", line) for line in lines]


COMMENT = "scontrol update jobid=4711 comment"
EVERYTHING = [COMMENT, "scontrol update nodename=n2 state=drain reason", "scancel 4711", "scontrol requeue 4711"]


@pytest.fixture
def slurm(tmp_path):
    return Slurm(tmp_path / "slurm")


def an_incident(*culprits, **fields):
    return {"id": "4711-train-1", "job": "4711-train", "state": "confirmed", "opened_at": "2026-11-26T04:00:00Z",
            "report_path": "/r", "verdicts": [{"cause": "missing_rank", "certainty": "certain", "summary": "rank 1",
                                               "culprits": list(culprits)}], **fields}


def a_culprit(node="n2", **fields):
    return {"rank": 1, "host": node, "node": node, **fields}


def on_hang(slurm, incident, *flags, policy=ALL, text=None, **options):
    folder = slurm.folder.parent
    (folder / "incident.json").write_text(json.dumps(incident) if text is None else text)
    (folder / "policy.yaml").write_text(f"slurm-bin: {slurm.folder}\nreports: {folder}/none\n{policy}")
    flags = flags or (f"--incident={folder}/incident.json",)
    return subprocess.run([SLURM / "on-hang", f"--config={folder}/policy.yaml", *flags], capture_output=True,
                          text=True, timeout=120, **options)


def test_a_hang_whose_culprits_are_all_the_jobs_users_is_acted_upon(slurm):
    done = on_hang(slurm, an_incident(a_culprit(uid=1000)))
    assert slurm.done() == EVERYTHING and done.returncode == 0, done.stderr


STRANGERS = {
    "another user": [a_culprit(uid=OTHER)],
    "one of another user": [a_culprit(uid=1000), a_culprit("n1", uid=OTHER)],
    "one of another user and one unknown": [a_culprit(), a_culprit("n1", uid=OTHER)],
    "root, who is not the job's user": [a_culprit(uid=0)],
}


@pytest.mark.parametrize("whose", STRANGERS)
def test_a_job_that_is_only_named_like_it_touches_nothing_of_another_users_job(slurm, whose):
    done = on_hang(slurm, an_incident(*STRANGERS[whose]))
    assert slurm.done() == [] and done.returncode == 0
    assert "nothing is done: job 4711 is of user 1000, and a culprit of user " in done.stderr


def test_a_culprit_of_another_user_in_a_later_verdict_counts_too(slurm):
    incident = an_incident(a_culprit(uid=1000))
    incident["verdicts"].append({"culprits": [a_culprit(uid=OTHER)]})
    on_hang(slurm, incident)
    assert slurm.done() == []


UNSURE = {
    "no culprits": (an_incident(), "the verdict names no culprit"),
    "an unknown user": (an_incident(a_culprit()), "it is unknown which user a culprit belongs to"),
    "user -1": (an_incident(a_culprit(uid=-1)), "it is unknown which user a culprit belongs to"),
    "one unknown user": (an_incident(a_culprit(uid=1000), a_culprit("n1")), "it is unknown which user"),
    "only a number": (an_incident(a_culprit(uid=1000), job="4711"), "has no name of Slurm behind its number"),
    "an empty name": (an_incident(a_culprit(uid=1000), job="4711-"), "has no name of Slurm behind its number"),
}


@pytest.mark.parametrize("what", UNSURE)
def test_without_proof_of_the_user_a_comment_is_all(slurm, what):
    incident, said = UNSURE[what]
    slurm.set(j="" if what == "an empty name" else "train")
    done = on_hang(slurm, incident)
    assert slurm.done() == [COMMENT] and "no requeue, no cancel, no drain: " in done.stderr and said in done.stderr


def test_flags_of_the_command_permit_no_more(slurm):
    on_hang(slurm, an_incident(a_culprit()), f"--incident={slurm.folder.parent}/incident.json", "--do=requeue,drain")
    assert slurm.done() == []


def test_an_alert_without_a_report_is_only_worth_a_comment(slurm):
    alert = {"status": "firing", "incident": "4711-train-1", "job": "4711-train", "link": "http://r", "hosts": "n2",
             "state": "confirmed", "opened_at": "2026-11-26 04:00:00 UTC", "cause": "missing_rank",
             "certainty": "certain", "summary": "rank 1"}
    done = on_hang(slurm, {}, "--do=comment,drain,cancel", input=json.dumps(alert))
    assert slurm.done() == [COMMENT], done.stderr


def test_rollcall_run_within_the_job_needs_the_user_too(slurm):
    folder = slurm.folder.parent
    env = {**os.environ, "ROLLCALL_REPORT": str(folder), "SLURM_JOB_ID": "4711"}
    on_hang(slurm, an_incident(a_culprit(uid=OTHER)), "--do=requeue", env=env)
    assert slurm.done() == []
    on_hang(slurm, an_incident(a_culprit(uid=1000), job="whatever"), "--do=requeue", env=env)
    assert slurm.done() == ["scontrol requeue 4711"]


@pytest.mark.parametrize("hosts,name,drained", [
    ({"n1": "host-1", "n2": "host-2"}, "host-2.example", ["n2"]),  # the agent knows its host's name alone
    ({"n1": "n1", "n2": "n2"}, "n2.example", ["n2"]),
    ({"n1": "one", "n2": "one"}, "one", []),                       # any of both may be the culprit's
])
def test_a_node_is_found_by_the_name_of_its_host(slurm, hosts, name, drained):
    slurm.set(hosts=hosts)
    done = on_hang(slurm, an_incident({"rank": 1, "host": name, "node": "", "uid": 1000}), policy=ALL.replace(
        "comment drain requeue cancel", "drain"))
    assert slurm.done() == [f"scontrol update nodename={node} state=drain reason" for node in drained], done.stderr
    assert drained or "one is one of n1, n2: none is drained" in done.stderr


def test_a_host_that_is_none_of_the_jobs_stops_everything(slurm):
    done = on_hang(slurm, an_incident(a_culprit("n9", uid=1000)))
    assert slurm.done() == [] and "n9 is not a node of job 4711" in done.stderr


def test_an_empty_line_for_a_partition_means_observe(slurm):
    on_hang(slurm, an_incident(a_culprit(uid=1000)), policy="on-hang: cancel\non-hang.usual:\n")
    assert slurm.done() == []


def test_only_the_digits_of_ascii_are_numbers(slurm):
    done = on_hang(slurm, an_incident(a_culprit(uid=1000), job="٤٧١١-train"))
    assert "is not one of Slurm's" in done.stderr
    done = on_hang(slurm, an_incident(), policy="drain-most: ٣\n")
    assert done.returncode == 2 and "drain-most takes a number" in done.stderr


ODD = {
    "a list": ([], "the incident is not an object"),
    "a number": (3, "the incident is not an object"),
    "a job that is a number": (an_incident(job=4711), "the incident: job is not a text"),
    "a time that is a list": (an_incident(opened_at=[]), "the incident: opened_at is not a text"),
    "verdicts that are an object": (an_incident(verdicts={}), "the incident: verdicts is not a list"),
    "a verdict that is a text": (an_incident(verdicts=["x"]), "a verdict of the incident is not an object"),
    "a cause that is a list": (an_incident(verdicts=[{"cause": []}]), "a verdict of the incident: cause is not a text"),
    "culprits that are a text": (an_incident(verdicts=[{"culprits": "x"}]), "culprits is not a list"),
    "a culprit that is null": (an_incident(None), "a culprit of the incident is not an object"),
    "a node that is a number": (an_incident({"node": 2}), "a culprit of the incident: node is not a text"),
    "a user that is a text": (an_incident(a_culprit(uid="1000")), "a culprit of the incident: uid is not a number"),
    "a user that is true": (an_incident(a_culprit(uid=True)), "a culprit of the incident: uid is not a number"),
}


@pytest.mark.parametrize("what", ODD)
def test_an_incident_of_odd_types_is_said_without_a_traceback(slurm, what):
    incident, said = ODD[what]
    done = on_hang(slurm, incident)
    assert done.returncode == 2 and said in done.stderr and "Traceback" not in done.stderr
    assert slurm.done() == []


def test_brackets_without_end_and_impossible_times_are_said_without_a_traceback(slurm):
    done = on_hang(slurm, None, text="[" * 200000)
    assert done.returncode == 2 and "cannot read the incident" in done.stderr and "Traceback" not in done.stderr
    done = on_hang(slurm, an_incident(a_culprit(uid=1000), opened_at="2026-99-99T99:99:99Z"))
    assert slurm.done() == [] and "Traceback" not in done.stderr
    done = on_hang(slurm, None, "--do=comment", input="[]")
    assert done.returncode == 2 and "the alert is not an object" in done.stderr


# --- watch-step, which is part of srun and acts with the rights of its user.
def watch_step():
    loader = importlib.machinery.SourceFileLoader("watch_step", str(SLURM / "watch-step"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("watch_step", loader))
    loader.exec_module(module)
    return module


@pytest.fixture
def look(slurm, tmp_path, monkeypatch, capfd):
    """look(incident, level): watch-step looks once at what the daemon says. -> (what it prints, whether srun lives)"""
    monkeypatch.setattr("sys.dont_write_bytecode", True)
    module = watch_step()
    program = tmp_path / "rollcall"
    program.write_text(f"#!/bin/sh\n[ $1 = incidents ] || exec echo {tmp_path}/r\n"
                       f"[ -e {tmp_path}/incidents.json ] && exec cat {tmp_path}/incidents.json\n"
                       "echo \"rollcall: no job \\\"$2\\\"; no job reports here\" >&2\nexit 1\n")
    program.chmod(0o755)
    for name in list(os.environ):
        if name.startswith(("SLURM", "ROLLCALL")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("ROLLCALL_PROGRAM", str(program))
    monkeypatch.setenv("SLURM_JOB_NAME", "train")
    monkeypatch.setenv("SLURM_JOB_NODELIST", "n[1-2]")
    monkeypatch.setenv("PATH", f"{slurm.folder}:{os.environ['PATH']}")
    sleeper = subprocess.Popen(["sleep", "1000"])

    def once(incident, level="abort"):
        if incident is not None:
            (tmp_path / "incidents.json").write_text(json.dumps({"incidents": [incident]}))
        watch = module.Watch(sleeper.pid, "4711", level)
        watch.look()
        try:
            sleeper.wait(timeout=0 if "ending the step" not in (said := capfd.readouterr().err) else 10)
        except subprocess.TimeoutExpired:
            return said, True
        return said, False

    yield once
    sleeper.kill()
    sleeper.wait()


OWN = os.getuid()


@pytest.mark.parametrize("culprits", [
    [a_culprit(uid=OWN)], [a_culprit(uid=OWN), a_culprit("n1", uid=OWN)], [a_culprit("N2.example", uid=OWN)],
    [{"host": "n1", "node": "", "uid": OWN}]], ids=["one", "two", "the full name", "a host alone"])
def test_abort_ends_the_step_on_a_hang_of_its_own_user_and_nodes(look, culprits):
    said, lives = look(an_incident(*culprits))
    assert "rollcall: rank 1\n" in said and not lives


def test_a_step_whose_ranks_have_not_reported_yet_is_watched(look):
    assert look(None) == ("", True)


def test_abort_knows_a_node_by_the_name_of_its_host(look, slurm):
    slurm.set(hosts={"n1": "host-1", "n2": "host-2"})
    assert not look(an_incident({"host": "host-2", "uid": OWN}))[1]


def test_a_component_of_a_heterogeneous_job_is_a_part_of_the_step(look, monkeypatch):
    monkeypatch.delenv("SLURM_JOB_NODELIST")
    monkeypatch.setenv("SLURM_JOB_NODELIST_HET_GROUP_1", "n2")
    assert not look(an_incident(a_culprit(uid=OWN)))[1]


def test_a_step_without_the_variable_asks_slurm_for_its_nodes(look, monkeypatch):
    monkeypatch.delenv("SLURM_JOB_NODELIST")
    assert not look(an_incident(a_culprit(uid=OWN)))[1]


@pytest.mark.parametrize("level", ["observe", "abort"])
@pytest.mark.parametrize("culprits", [[a_culprit(uid=OTHER)], [a_culprit(uid=OWN), a_culprit("n1", uid=OTHER)]],
                         ids=["another user", "one of another user"])
def test_a_hang_of_another_user_is_not_even_told(look, culprits, level):
    assert look(an_incident(*culprits), level) == ("", True)


@pytest.mark.parametrize("culprits,said", [
    ([], "the step goes on: the verdict names no culprit"),
    ([a_culprit()], "the step goes on: it is unknown which user a culprit belongs to"),
    ([a_culprit(uid=OWN), a_culprit("n1")], "the step goes on: it is unknown which user a culprit belongs to"),
    ([a_culprit("n9", uid=OWN)], "the step goes on: n9 is not a node of this job"),
    ([a_culprit(uid=OWN), a_culprit("n22", uid=OWN)], "the step goes on: n22 is not a node of this job"),
    ([{"host": "", "uid": OWN}], "the step goes on: an unknown host is not a node of this job"),
], ids=["no culprit", "unknown", "one unknown", "a strange node", "one strange node", "no host"])
def test_without_proof_a_hang_is_told_and_the_step_goes_on(look, culprits, said):
    shown, lives = look(an_incident(*culprits))
    assert lives and "rollcall: rank 1\n" in shown and said in shown
