# SPDX-License-Identifier: Apache-2.0
"""A job of two nodes that hangs, on a real Slurm, in each run of the gate."""
from cluster import USER
from conftest import victim


def test_a_job_that_hangs_is_named_and_its_report_stands_in_its_folder(site):
    number = site.submit(victim("one_rank_stops_calling"), "--rollcall", "-n2", "-N2")
    incident = site.wait_for_incident(f"{number}-train")
    assert incident.get("attempt", 0) == 0
    [culprit] = incident["verdicts"][0]["culprits"]
    assert (culprit["rank"], culprit["node"]) == (1, "n2")
    site.wait(lambda: "rollcall" in site.job(number).get("Comment", ""), tell=lambda: site.output(number))
    report = site.job(number)["Comment"].split("rollcall: ")[1].strip()
    assert f"report: {report}/report.txt" in site.output(number)
    assert incident["verdicts"][0]["summary"][:40] in site.output(number)
    folder = site.jobs / report.removeprefix("/mnt/")
    assert folder.stat().st_uid == USER
    assert sorted(path.name for path in folder.iterdir()) == [
        "incident.json", "report.html", "report.txt", "stacks.txt"]
    assert site.job(number)["JobState"] == "RUNNING"  # it was only observed
    site.run("scancel", str(number), user=USER)
    site.wait_for_state(number, "CANCELLED")
    site.wait_for_incident(f"{number}-train", state="ended")
