# SPDX-License-Identifier: Apache-2.0
"""What people do on the pages of jobs that really hang: they take an incident, write notes, silence its
alerts, and look back to a moment of the last hour."""
import os
import pwd
import re
import urllib.error

from axe_playwright_python.sync_playwright import Axe
from conftest import ask
from playwright.sync_api import expect
from processes import wait_for

ME = pwd.getpwuid(os.geteuid()).pw_name


def assert_accessible(page):
    found = Axe().run(page, options={"runOnly": ["wcag2a", "wcag2aa", "wcag21aa"]})
    assert found.violations_count == 0, found.generate_report()


def open_incident(open_page, daemon, **options):
    incident = wait_for(lambda: ask(daemon, "incidents")["incidents"])[0]["id"]
    return open_page(f"{daemon.page}/#/incident/{incident}", **options)


def test_an_operator_acknowledges_an_incident_and_writes_a_note(open_page, daemon, start_job):
    start_job(daemon)
    page = open_incident(open_page, daemon)
    page.get_by_role("button", name="Acknowledge").click()
    expect(page.locator("main")).to_contain_text(f"Acknowledged by {ME}")
    page.get_by_label("Note").fill("the switch of rack 4")
    page.get_by_role("button", name="Add").click()
    expect(page.locator("li", has_text="the switch of rack 4")).to_be_visible()
    expect(page.get_by_label("Note")).to_have_value("")
    page.get_by_role("button", name="Take back").click()
    expect(page.get_by_role("button", name="Acknowledge")).to_be_visible()


def test_the_link_of_an_alert_leads_to_the_button_beside_the_sentence(open_page, daemon, start_job):
    start_job(daemon)
    incident = wait_for(lambda: ask(daemon, "incidents")["incidents"])[0]["id"]
    page = open_page(f"{daemon.page}/#/incident/{incident}?do=acknowledge")
    button = page.get_by_role("button", name="Acknowledge")
    expect(button).to_be_focused()
    assert button.bounding_box()["y"] < page.locator("#stacks").bounding_box()["y"]
    expect(page.locator("main")).to_contain_text(re.compile(r"\d rank-hours lost so far"))
    button.press("Enter")
    expect(page.locator("main")).to_contain_text(f"Acknowledged by {ME}")
    for address in ("#/", "#/history"):
        other = open_page(f"{daemon.page}/{address}")
        expect(other.locator("main")).to_contain_text(f"acknowledged by {ME}")


def test_an_incident_leads_to_the_runbook_of_its_cause(open_page, daemon, start_job):
    start_job(daemon)
    page = open_incident(open_page, daemon)
    page.get_by_role("link", name="Runbook of missing_rank").click()
    expect(page.get_by_role("heading", name="Runbook: missing_rank")).to_be_visible()
    expect(page.get_by_role("heading", name="End the job, or wait?")).to_be_visible()
    expect(page.locator("ol li").first).to_contain_text("Read the line of the culprit")
    assert_accessible(page)


def test_an_incident_offers_a_silence_for_its_like_and_the_list_of_jobs_ends_it(
        open_page, daemon, start_job):
    start_job(daemon)
    page = open_incident(open_page, daemon)
    page.get_by_text("Silence alerts like this").click()
    page.get_by_label(re.compile("cause missing_rank")).check()
    page.get_by_role("combobox", name="For").select_option("8 hours")
    page.get_by_label("Why").fill("new switches")
    assert_accessible(page)
    page.get_by_role("button", name="Silence").click()
    expect(page.locator("main")).to_contain_text(re.compile(
        rf"Alerts silenced until .* by {ME} \(.*job a-job, cause missing_rank\): new switches"))
    silence, = ask(daemon, "silences")["silences"]
    assert (silence["job"], silence["host"], silence["cause"]) == ("a-job", "", "missing_rank")
    page.goto(f"{daemon.page}/#/")
    page.get_by_text("1 silence holds back alerts").click()
    expect(page.locator("li", has_text="new switches")).to_contain_text("1 incident so far")
    page.get_by_role("button", name="End").click()
    expect(page.get_by_text("holds back alerts")).to_have_count(0)


def test_a_silence_without_a_choice_says_what_is_missing(open_page, daemon, start_job):
    start_job(daemon)
    page = open_incident(open_page, daemon)
    page.get_by_text("Silence alerts like this").click()
    page.get_by_label(re.compile("job a-job")).uncheck()
    page.get_by_role("button", name="Silence").click()
    expect(page.get_by_role("alert")).to_contain_text("a silence needs a job, a host or a cause")


def kept_from_before_the_hang(daemon):
    """The time of a state that the daemon has kept from before the hang; None: not yet."""
    try:
        view = ask(daemon, "job", job="a-job")
    except urllib.error.HTTPError:
        return None  # the job has not begun
    return view.get("kept_from") if view["status"]["state"] == "hung" else None


def test_the_slider_shows_the_job_as_it_was_before_it_hung(open_page, start_daemon, start_job):
    daemon = start_daemon("--hang-after=15s")
    start_job(daemon, said=None)
    wait_for(lambda: kept_from_before_the_hang(daemon))
    page = open_page(f"{daemon.page}/#/job/a-job")
    expect(page.locator(".sentence").first).to_contain_text("rank 3")
    slider = page.get_by_role("slider", name=re.compile("Show the job as of"))
    slider.focus()
    slider.press("Home")
    expect(page.locator(".past")).to_contain_text("This is the state of")
    expect(page.locator(".sentence").first).to_contain_text(re.compile("not a hang yet|No problem"))
    assert "at=" in page.url
    assert_accessible(page)
    # The address of the moment is one to send to a colleague.
    other = open_page(page.url, width=390)
    expect(other.locator(".past")).to_contain_text("This is the state of")
    other.get_by_role("button", name="Back to now").click()
    expect(other.locator(".sentence").first).to_contain_text("rank 3")


def test_a_double_click_on_the_timeline_shows_the_job_of_that_moment(
        open_page, start_daemon, start_job):
    daemon = start_daemon("--hang-after=15s")
    start_job(daemon, said=None)
    wait_for(lambda: kept_from_before_the_hang(daemon))
    page = open_page(f"{daemon.page}/#/job/a-job")
    canvas = page.get_by_role("application", name="calls of ranks")
    box = canvas.bounding_box()
    canvas.dblclick(position={"x": box["width"] * 0.8, "y": 20})
    expect(page.locator(".past")).to_contain_text("This is the state of")


def test_a_moment_before_the_oldest_state_says_what_there_is(open_page, daemon, start_job):
    start_job(daemon)
    wait_for(lambda: "kept_from" in ask(daemon, "job", job="a-job"))
    page = open_page(f"{daemon.page}/#/job/a-job?at=2020-01-01T00:00:00Z")
    expect(page.locator("main")).to_contain_text("the oldest state of this job")
    expect(page.get_by_role("alert")).not_to_contain_text("T")  # no time in UTC
    page.get_by_role("button", name=re.compile("^Show \\d\\d:")).click()
    expect(page.locator(".past")).to_contain_text("This is the state of")
    page.get_by_role("button", name="Back to now").click()
    expect(page.locator(".sentence").first).to_contain_text("rank 3")
