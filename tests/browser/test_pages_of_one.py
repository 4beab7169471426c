# SPDX-License-Identifier: Apache-2.0
"""The pages of one rank, one communicator and one host, of jobs that really hang, and the ways
there from every other view."""
import re

import pytest
from axe_playwright_python.sync_playwright import Axe
from conftest import ask
from playwright.sync_api import expect
from processes import wait_for


def process_of(daemon, rank, job="a-job"):
    return ask(daemon, "processes", job=job, ranks=rank)["processes"][0]


def communicator_of(daemon, job="a-job"):
    return ask(daemon, "job", job=job)["status"]["communicators"][0]


def test_a_culprits_page_says_who_it_is_and_where_and_what_it_does(
        open_page, daemon, start_job, monkeypatch):
    monkeypatch.setenv("NCCL_DEBUG", "WARN")
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    start_job(daemon)
    page = open_page(f"{daemon.page}/#/job/a-job/rank/3")
    main, process = page.locator("main"), process_of(daemon, 3)
    expect(page).to_have_title("rank 3 of a-job · Rollcall")
    expect(page.locator("h1")).to_have_text("Rank 3 of a-job")
    expect(page.locator(".sentence")).to_contain_text("A culprit of the incident a-job-1")
    for text in (str(process["pid"]), process["command"], process["stderr_to"], "NCCL_DEBUG=WARN"):
        expect(main).to_contain_text(text)
    expect(main).not_to_contain_text("hf_secret")
    assert "one_rank_stops_calling" in process["command"] and process["stderr_to"] != ""
    calls = ask(daemon, "calls", job="a-job", ranks=3)["ranks"][0]["communicators"]
    rows = page.get_by_role("region", name="communicators").locator("tbody tr")
    expect(rows).to_have_count(len(calls))
    expect(rows.first).to_contain_text("behind others by 1 call")
    page.locator("summary", has_text="As a table").click()
    expect(page.get_by_role("region", name="calls")).to_contain_text("AllReduce(float32")
    expect(main).to_contain_text("Rank 3 was a culprit in 1 of 1 incident of this job")


def test_a_ranks_page_has_its_stacks_of_the_incident_and_of_now(open_page, daemon, start_job):
    start_job(daemon)
    page = open_page(f"{daemon.page}/#/job/a-job/rank/3")
    then = page.locator("section", has=page.get_by_role("heading", name="Stacks"))
    expect(then.locator("details").last).to_contain_text("Validate()")  # the newest is open
    page.get_by_role("button", name="take stacks now").click()
    expect(page.locator(".card", has_text="Taken")).to_contain_text("Validate()")


def test_a_waiting_ranks_page_says_in_which_call_and_on_which_communicator(
        open_page, daemon, start_job):
    start_job(daemon)
    page = open_page(f"{daemon.page}/#/job/a-job/rank/0")
    expect(page.locator(".sentence")).to_contain_text(re.compile(
        r"Waits for others in AllReduce\(float32.*\) #\d+ on .*4 ranks.*, for \d"))
    expect(page.locator("main")).to_contain_text("Rank 0 was a culprit in 0 of 1 incident")


def test_a_rank_that_ended_says_how(open_page, daemon, start_job):
    start_job(daemon).kill()
    page = open_page(f"{daemon.page}/#/job/a-job/rank/0")
    expect(page.locator(".sentence")).to_contain_text(
        re.compile("Its process: (killed by signal|died|ended)"))
    expect(page.get_by_role("button", name="take stacks now")).to_have_count(0)


def test_a_rank_that_no_agent_has_reported_is_not_made_up(open_page, daemon, start_job):
    start_job(daemon)
    page = open_page(f"{daemon.page}/#/job/a-job/rank/77")
    expect(page.locator(".sentence")).to_contain_text("No agent has reported this rank")
    page.goto(f"{daemon.page}/#/job/a-job/rank/x")
    expect(page.locator("h1")).to_have_text("Page not found")


def test_a_communicators_page_lists_the_ranks_that_are_behind_first(open_page, daemon, start_job):
    start_job(daemon)
    comm = communicator_of(daemon)
    page = open_page(f"{daemon.page}/#/job/a-job")
    page.get_by_role("region", name="communicators").get_by_role(
        "link", name=comm["name"] or comm["id"], exact=True).click()
    assert page.url.endswith(f"#/job/a-job/communicator/{comm['id']}")
    expect(page.locator("h1")).to_have_text(f"Communicator “{comm['name']}” of a-job")
    expect(page.locator(".sentence")).to_contain_text("3 ranks wait in AllReduce")
    expect(page.locator(".sentence")).to_contain_text("behind is rank 3")
    rows = page.get_by_role("region", name="ranks").locator("tbody tr")
    expect(rows).to_have_count(4)
    expect(rows.first).to_contain_text("behind others by 1 call, not waiting")
    expect(rows.first.get_by_role("link", name="3", exact=True)).to_be_visible()
    expect(rows.nth(1)).to_contain_text("waiting for others")
    expect(page.get_by_role("region", name="incidents")).to_contain_text("a-job-1")


def test_a_communicator_that_is_not_there_says_so(open_page, daemon, start_job):
    start_job(daemon)
    page = open_page(f"{daemon.page}/#/job/a-job/communicator/dead")
    expect(page.get_by_role("alert")).to_contain_text('no communicator with the id "dead"')


def test_a_hosts_page_answers_whether_it_is_always_this_host(open_page, daemon, start_job):
    start_job(daemon, name="one")
    start_job(daemon, name="two")
    host = process_of(daemon, 0, job="one")["host"]
    page = open_page(f"{daemon.page}/#/host/{host}")
    expect(page.locator("h1")).to_have_text(f"Host {host}")
    expect(page.locator(".sentence")).to_contain_text(
        "A culprit was on this host in 2 of 2 incidents, in 2 jobs")
    for job in ("one", "two"):
        expect(page.get_by_role("heading", name=f"hung {job}")).to_be_visible()
    expect(page.get_by_role("region", name="processes")).to_have_count(2)
    rows = page.get_by_role("region", name="incidents").locator("tbody tr")
    expect(rows).to_have_count(2)
    expect(rows.first.get_by_role("link", name="3", exact=True).first).to_be_visible()
    page.goto(f"{daemon.page}/#/host/elsewhere")
    expect(page.locator(".sentence")).to_contain_text("Unknown host: no job of this daemon")
    expect(page.locator(".sentence-running")).to_have_count(0)  # nothing is all clear


def test_every_view_leads_to_the_rank_the_communicator_and_the_host(open_page, daemon, start_job):
    start_job(daemon)
    host, comm = process_of(daemon, 3)["host"], communicator_of(daemon)["id"]
    rank, of, place = "/rank/3", f"/communicator/{comm}", f"#/host/{host}"
    views = {
        "#/job/a-job": (rank, of, place),
        "#/incident/a-job-1": (rank, of, place),
        "#/history": (rank, place),
        "#/compare/a-job-1/a-job-1": (rank, of, place),
        "#/job/a-job/rank/3": (of, place),
        f"#/job/a-job{of}": (rank, place),
        place: (rank,),
    }
    page = open_page(daemon.page)
    for view, ways in views.items():
        page.goto(f"{daemon.page}/{view}")
        for way in ways:
            link = page.locator(f"main a[href*='{way}']").first
            expect(link, f"{view} leads to {way}").to_be_visible()
    page.goto(f"{daemon.page}/#/incident/a-job-1")
    page.locator("h1 a", has_text="3").click()
    expect(page.locator("h1")).to_contain_text("Rank 3 of a-job")


def test_the_address_of_a_rank_is_kept_by_the_browsers_history(open_page, daemon, start_job):
    start_job(daemon)
    page = open_page(f"{daemon.page}/#/job/a-job")
    page.locator(".sentence a", has_text="3").first.click()
    expect(page.locator("h1")).to_contain_text("Rank 3 of")
    address = page.url
    page.get_by_role("link", name="Rank 2", exact=True).click()
    expect(page.locator("h1")).to_contain_text("Rank 2 of")
    page.go_back()
    expect(page.locator("h1")).to_contain_text("Rank 3 of")
    page.go_back()
    expect(page.get_by_role("heading", name="Last calls")).to_be_visible()
    assert page.url.endswith("#/job/a-job")
    colleague = open_page(address)
    expect(colleague.locator("h1")).to_contain_text("Rank 3 of a-job")


def test_keys_alone_lead_from_the_map_to_the_rank_and_its_communicator(
        open_page, daemon, start_job):
    start_job(daemon)
    page = open_page(f"{daemon.page}/#/job/a-job")
    page.locator(".map canvas").first.focus()
    expect(page.locator(".map .hint").first).to_contain_text("rank 3")
    page.keyboard.press("o")
    expect(page.locator("h1")).to_contain_text("Rank 3 of a-job")
    # The next key goes on from the new view's beginning.
    assert page.evaluate("document.activeElement.tagName") == "MAIN"
    page.keyboard.press("Tab")
    expect(page.locator("h1 a")).to_be_focused()
    link = page.get_by_role("region", name="communicators").get_by_role("link").first
    link.focus()
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_contain_text("Communicator ")
    assert page.evaluate("document.activeElement.tagName") == "MAIN"


def test_a_report_on_a_disk_has_no_links_to_pages_that_are_not_there(
        open_page, daemon, start_job, tmp_path):
    start_job(daemon)
    report = wait_for(lambda: next((tmp_path / "here").glob("*/report.html"), None))
    page = open_page(report.as_uri())
    expect(page.locator("h1")).to_contain_text("rank 3")
    expect(page.locator(".icicle .frame").first).to_be_visible()
    assert page.locator("a[href^='#/']").count() == 0


def views_of_one(daemon):
    return ["#/job/a-job/rank/3", "#/job/a-job/rank/0",
            f"#/job/a-job/communicator/{communicator_of(daemon)['id']}",
            f"#/host/{process_of(daemon, 3)['host']}"]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_pages_of_one_are_for_everybody_and_fit_a_phone(open_page, daemon, start_job, theme):
    start_job(daemon)
    for view in views_of_one(daemon):
        page = open_page(f"{daemon.page}/{view}", theme=theme, width=390, height=844)
        expect(page.locator("main section").first).to_be_visible()
        page.wait_for_timeout(1000)
        assert page.evaluate("document.documentElement.scrollWidth") <= 390, view
        found = Axe().run(page, options={"runOnly": ["wcag2a", "wcag2aa", "wcag21aa"]})
        assert found.violations_count == 0, f"{view} {theme}\n{found.generate_report()}"


def test_a_number_in_the_name_of_a_communicator_is_no_link_to_a_rank(open_page, daemon, start_job):
    start_job(daemon, "two_communicators_in_other_orders", said="wait for each other")
    page = open_page(f"{daemon.page}/#/job/a-job")
    sentence = page.locator(".sentence").first
    expect(sentence).to_contain_text(re.compile('"all ranks [0-9a-f]{8}"'))
    names = re.findall("all ranks ([0-9a-f]+)", sentence.inner_text())
    links = sentence.locator("a").all_inner_texts()
    assert links and not any(link.isdigit() and int(link) > 3 for link in links), links
    html = sentence.inner_html()
    assert all(f"all ranks {name}" in html for name in names), html
