# SPDX-License-Identifier: Apache-2.0
"""What deploy/slurm/on-hang does when the daemon has confirmed a hang, and what it refuses."""
import json
import re
import subprocess

import pytest
from cluster import SLURM, USER
from conftest import victim

ON_HANG = SLURM / "on-hang"


def on_hang(*arguments, **options):
    return subprocess.run([ON_HANG, *arguments], capture_output=True, text=True, timeout=120, **options)


@pytest.mark.parametrize("line,said", [
    ("on-hang: reboot", "policy.yaml:2: no such action: reboot; known: observe, comment, requeue, cancel, drain"),
    ("on-hang: observe drain", "policy.yaml:2: observe means to do nothing, so it stands alone"),
    ("on-hang.gpu: fly", "policy.yaml:2: no such action: fly"),
    ("onhang: comment", "policy.yaml:2: no such setting: onhang; known: on-hang, drain-causes"),
    ("drain-most: one", "policy.yaml:2: drain-most takes a number, not 'one'"),
])
def test_a_wrong_file_is_said_with_its_line(tmp_path, line, said):
    file = tmp_path / "policy.yaml"
    file.write_text(f"# mine\n{line}\n")
    done = on_hang(f"--config={file}", "--incident=/dev/null")
    assert done.returncode == 2 and said in done.stderr


def test_the_file_of_the_package_has_each_setting_with_its_default(tmp_path):
    text = (SLURM / "slurm.yaml").read_text()
    file = tmp_path / "policy.yaml"
    file.write_text(re.sub(r"^#(on-hang|[a-z-]+)(\.PARTITION)?:", r"\1\2:", text, flags=re.MULTILINE))
    done = on_hang(f"--config={file}", "--incident=/no/such/file")
    assert "cannot read the incident" in done.stderr  # and nothing is wrong with the file
    source = ON_HANG.read_text()
    for key in re.findall(r'"([a-z-]+)": "', source[source.index("DEFAULTS"):source.index("NUMBERS")]):
        assert f"#{key}: " in text, key


@pytest.fixture(scope="module")
def hung(site):
    """A job that hangs and is observed. -> (its number, its incident.json)"""
    number = site.submit(victim("one_rank_stops_calling"), "--rollcall", "-n2", "-N2")
    site.wait(lambda: "rollcall" in site.job(number).get("Comment", ""), tell=lambda: site.output(number))
    [report] = (site.jobs / "rollcall-reports").glob(f"*-{number}-train-*/incident.json")
    incident = json.loads(report.read_text())
    incident["verdicts"][0]["culprits"][0].update(uid=USER, node="n2")
    yield number, incident
    site.run("scancel", str(number), user=USER)
    site.wait_for_state(number, "CANCELLED")


def dry_run(site, incident, *flags, policy="on-hang: comment drain requeue\ndrain-causes: missing_rank\n"):
    (site.tmp / "incident.json").write_text(json.dumps(incident))
    (site.tmp / "dry.yaml").write_text(policy)
    done = site.run("/usr/lib/rollcall/slurm/on-hang", "--dry-run", "--config=/tmp/dry.yaml",
                    "--incident=/tmp/incident.json", *flags, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def test_a_dry_run_prints_the_commands_in_their_order(site, hung):
    number, incident = hung
    before = site.states()
    said = dry_run(site, dict(incident, report_path="/var/lib/rollcall/r"))
    commands = re.findall(r"^would run: (.*)$", said, re.MULTILINE)
    assert [command.split()[0:2] for command in commands] == [
        ["scontrol", "update"], ["scontrol", "update"], ["scontrol", "requeue"]]
    assert commands[0].startswith(f"scontrol update jobid={number} 'comment=rollcall: /mnt/rollcall-reports/")
    assert commands[0].endswith("; rollcall: /var/lib/rollcall/r'")
    assert commands[1].startswith("scontrol update nodename=n2 state=drain 'reason=rollcall: missing_rank, job ")
    assert commands[2] == f"scontrol requeue {number}"
    assert site.states() == before and site.job(number)["Restarts"] == "0"


def test_a_report_that_is_in_the_comment_is_not_added_again(site, hung):
    number, incident = hung
    report = site.job(number)["Comment"].split("rollcall: ")[1].strip()
    assert "would run" not in dry_run(site, dict(incident, report_path=report), "--do=comment")


def test_a_comment_that_looks_like_fields_of_slurm_stays_whole_and_changes_nothing(site, hung):
    number, incident = hung
    before = site.run("squeue", "-h", "-j", str(number), "-o", "%k").stdout.strip()
    mine = "lr=3 NodeList=n[1-9] Partition=none JobState=PENDING bs=4"
    site.run("scontrol", "update", f"jobid={number}", f"comment={mine}", user=USER)
    try:
        said = dry_run(site, dict(incident, report_path="/r"), policy="on-hang.usual: comment\non-hang: drain\n")
        assert f"would run: scontrol update jobid={number} 'comment={mine}; rollcall: /r'" in said
        strange = json.loads(json.dumps(incident))
        strange["verdicts"][0]["culprits"][0].update(node="n9")
        assert "n9 is not a node of job" in dry_run(site, strange)
    finally:
        site.run("scontrol", "update", f"jobid={number}", f"comment={before}", user=USER)


def test_a_component_of_a_heterogeneous_job_is_found(site, hung):
    number = site.submit("sleep 60", "-n1", "-N1", ":", "-n1", "-N1")
    site.wait_for_state(number, "RUNNING")
    try:
        incident = json.loads(json.dumps(hung[1]))
        incident.update(job=f"{number}+1-train", opened_at="2099-01-01T00:00:00Z", report_path="/r")
        incident["verdicts"][0]["culprits"][0].update(node=site.job(f"{number}+1")["NodeList"])
        said = dry_run(site, incident, policy="on-hang: comment cancel")
        assert f"jobid={number}+1 'comment=rollcall: /r'" in said and f"would run: scancel {number}\n" in said, said
    finally:
        site.run("scancel", str(number))


CHANGES = {
    "only possible": (lambda i: i["verdicts"][0].update(certainty="possible"), "the verdict is only possible"),
    "resolved": (lambda i: i.update(state="resolved"), "the incident is resolved"),
    "of an earlier life": (lambda i: i.update(opened_at="2020-01-01T00:00:00Z"), "has started again since the hang"),
    "another's job": (lambda i: i.update(job=i["job"].replace("train", "mine")), "is train, and not mine"),
    "no such job": (lambda i: i.update(job="999999-train"), "999999"),
    "no job of Slurm": (lambda i: i.update(job="train"), "the job 'train' is not one of Slurm's"),
    "another user's": (lambda i: i["verdicts"][0]["culprits"][0].update(uid=1),
                       f"is of user {USER}, and a culprit of user 1"),
    "a strange node": (lambda i: i["verdicts"][0]["culprits"][0].update(node="n9"), "n9 is not a node of job"),
}


@pytest.mark.parametrize("what", CHANGES)
def test_nothing_is_done_about_an_incident_that_is(site, hung, what):
    change, said = CHANGES[what]
    incident = json.loads(json.dumps(hung[1]))
    change(incident)
    (site.tmp / "incident.json").write_text(json.dumps(incident))
    done = site.run("/usr/lib/rollcall/slurm/on-hang", "--dry-run", "--incident=/tmp/incident.json", check=False)
    assert "would run" not in done.stdout and said in done.stderr


@pytest.mark.parametrize("policy,said", [
    ("on-hang: drain\n", "missing_rank is not held against a node: none is drained (drain-causes)"),
    ("on-hang: drain\ndrain-causes: missing_rank\ndrain-most: 0\n", "blames 1 nodes: none is drained (drain-most)"),
    ("on-hang: drain\ndrain-causes: missing_rank\ndrain-total: 0\n", "no further one (drain-total)"),
    ("on-hang: requeue\nrequeue-most: 0\n", "not once more (requeue-most)"),
    ("on-hang: cancel\non-hang.usual: observe\n", ""),
])
def test_the_limits_of_the_policy_hold(site, hung, policy, said):
    shown = dry_run(site, hung[1], policy=policy)
    assert "would run" not in shown and said in shown


def test_a_job_is_requeued_and_named_again_as_another_attempt(site):
    number = site.submit(victim("one_rank_stops_calling"), "--rollcall", "-n2", "-N2", "--partition=requeues",
                         "--requeue")
    first = site.wait_for_incident(f"{number}-train", state="ended")
    second = site.wait_for_incident(f"{number}-train", attempt=1)
    assert first.get("attempt", 0) == 0 and second["verdicts"][0]["culprits"][0]["rank"] == 1
    assert site.job(number)["Restarts"] == "1"
    log = site.tmp / "on-hang.log"
    site.wait(lambda: f"job {number} has been requeued 1 times: not once more" in log.read_text(),
              tell=log.read_text)
    assert log.read_text().count(f"scontrol requeue {number}") == 1
    assert site.job(number)["Comment"].count("rollcall: ") >= 2  # of both lives
    site.run("scancel", str(number), user=USER)
    site.wait_for_state(number, "CANCELLED")


def test_the_culprits_node_is_drained_with_a_reason_and_the_job_cancelled(site):
    number = site.submit(victim("one_rank_stops_calling"), "--rollcall", "-n2", "-N2", "--partition=drains")
    site.wait_for_state(number, "CANCELLED")
    try:
        site.wait(lambda: site.states()["n2"] in ("drained", "draining"), tell=site.states)
        assert "drain" not in site.states()["n1"]
        reason = site.run("sinfo", "-h", "-n", "n2", "-p", "usual", "-o", "%E").stdout
        assert reason.startswith(f"rollcall: missing_rank, job {number}: rank 1 ")
    finally:
        site.run("scontrol", "update", "nodename=n2", "state=resume")
    assert "drain" not in site.states()["n2"]


def test_a_user_may_requeue_his_own_job_from_within(site):
    daemon = f"127.0.0.1:{site.daemon_port}"
    run = (f"/usr/lib/rollcall/bin/rollcall run --daemon={daemon} --token-file=/run/viewer --http=none --hang-after=3s "
           "--on-hang=exec:'/usr/lib/rollcall/slurm/on-hang --do=comment,requeue' -- ")
    number = site.submit(f"[ -n \"$SLURM_RESTART_COUNT\" ] && exit 0\n{run}{victim('one_rank_stops_calling')}",
                         "--rollcall", "-n2", "-N2", "--requeue")
    site.wait(lambda: site.job(number)["Restarts"] == "1", tell=lambda: site.output(number))
    assert f"scontrol requeue {number}" in site.output(number)
    assert "rollcall: /mnt/rollcall-reports/" in site.job(number)["Comment"]
    site.wait_for_state(number, "COMPLETED")
