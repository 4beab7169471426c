# SPDX-License-Identifier: Apache-2.0
"""The views that everybody needs, in each run of the gate: the jobs, a job, an incident."""
from conftest import ask
from playwright.sync_api import expect


def test_jobs_are_listed_with_their_health(open_page, daemon, start_job):
    start_job(daemon)
    page = open_page(daemon.page)
    row = page.locator("tr", has_text="a-job")
    expect(row.locator(".state")).to_contain_text("hung")
    job = ask(daemon, "jobs")["jobs"][0]
    expect(row).to_contain_text(f"{job['processes_alive']} / {job['processes']}")
    expect(row).to_contain_text("has not called AllReduce")
    row.get_by_role("link", name="a-job").first.click()
    expect(page.locator("h1")).to_contain_text("a-job")
    assert page.url.endswith("#/job/a-job")


def test_a_job_shows_who_waits_and_who_does_not_come(open_page, daemon, start_job):
    start_job(daemon)
    page = open_page(f"{daemon.page}/#/job/a-job")
    expect(page.locator(".sentence")).to_contain_text("rank 3")
    expect(page.locator(".words")).to_contain_text("waiting for others: ranks 0-2 (3)")
    expect(page.locator(".words")).to_contain_text("behind others by 1 call, not waiting: rank 3")
    view = ask(daemon, "job", job="a-job")
    comm = view["status"]["communicators"][0]
    table = page.get_by_role("region", name="communicators")
    expect(table).to_contain_text(comm["name"] or comm["id"])
    expect(table).to_contain_text(f"#{comm['position_min'] - 1} to #{comm['position_max'] - 1}")
    expect(table).to_contain_text("AllReduce(float32")
    processes = page.get_by_role("region", name="processes")
    for process in ask(daemon, "processes", job="a-job")["processes"]:
        expect(processes).to_contain_text(str(process["pid"]))
    expect(processes).to_contain_text("cudaStreamSynchronize for")


def test_an_incident_has_its_verdict_its_evidence_and_its_stacks(open_page, daemon, start_job):
    start_job(daemon)
    page = open_page(f"{daemon.page}/#/incident/a-job-1")
    verdict = ask(daemon, "incident", id="a-job-1")["verdicts"][0]
    expect(page.locator("h1")).to_contain_text("has not called AllReduce")
    for text in [verdict["cause"], verdict["certainty"], *verdict["evidence"],
                 *(advice["text"] for advice in verdict["advice"])]:
        expect(page.locator("main")).to_contain_text(text)
    cards = page.locator(".cards .card")
    expect(cards.nth(0)).to_contain_text(f"pid {verdict['culprits'][0]['pid']}")
    expect(cards.nth(0)).to_contain_text("Now in pause ← Validate()")
    expect(cards.nth(1)).to_contain_text("ranks 0-2")
    expect(page.locator("details[open]").first).to_contain_text("Validate()")
    # The picture: what differs, searched, and one frame alone.
    expect(page.locator(".icicle .frame", has_text="main").first).to_be_visible()
    page.get_by_role("searchbox").fill("validate")
    expect(page.locator(".icicle [role=status]")).to_contain_text("frames")
    assert page.locator(".icicle .found").count() >= 1
    page.get_by_role("searchbox").fill("")
    few = page.locator(".icicle .frame").count()
    page.get_by_label("only differences").uncheck()
    assert page.locator(".icicle .frame").count() >= few
    page.locator(".icicle .frame", has_text="main").first.press("Enter")
    page.get_by_role("button", name="show all").click()
