# SPDX-License-Identifier: Apache-2.0
"""The view "Recurring hangs" of a daemon whose job really hangs."""
import re

from axe_playwright_python.sync_playwright import Axe
from conftest import ask
from playwright.sync_api import expect
from processes import wait_for


def assert_accessible(page):
    # A view without a connection is paler.
    expect(page.locator(".page.old")).to_have_count(0)
    found = Axe().run(page, options={"runOnly": ["wcag2a", "wcag2aa", "wcag21aa"]})
    assert found.violations_count == 0, found.generate_report()


def open_questions(open_page, daemon, start_job, **options):
    start_job(daemon)
    wait_for(lambda: ask(daemon, "questions", by="cause")["counts"])
    return open_page(f"{daemon.page}/#/history", **options)


def test_the_list_of_incidents_leads_to_what_comes_back(open_page, daemon, start_job):
    page = open_questions(open_page, daemon, start_job)
    page.get_by_role("link", name="Recurring hangs").click()
    expect(page.get_by_role("heading", name="Recurring hangs")).to_be_visible()
    host = ask(daemon, "questions", by="host")["counts"][0]["value"]
    row = page.get_by_role("row", name=re.compile(host))
    expect(row.get_by_role("link", name=host, exact=True)).to_have_attribute("href", f"#/host/{host}")
    assert_accessible(page)
    page.get_by_label("By").select_option("Cause")
    expect(page.get_by_role("row", name=re.compile("missing_rank"))).to_be_visible()
    page.get_by_label("In the last").select_option("7 days")
    assert "by=cause" in page.url and "days=7" in page.url
    # The count leads to the incidents that it counts.
    page.get_by_role("row", name=re.compile("missing_rank")).get_by_role("link", name="1", exact=True).click()
    expect(page.get_by_role("heading", name="Incidents", exact=True)).to_be_visible()
    expect(page.get_by_text("1 incident", exact=True)).to_be_visible()
    assert "cause=missing_rank" in page.url and "from=" in page.url


def test_a_filter_that_nothing_fits_says_so(open_page, daemon, start_job):
    page = open_questions(open_page, daemon, start_job)
    page.goto(f"{daemon.page}/#/questions?by=gpu&cause=rank_died")
    expect(page.get_by_text("No confirmed incident of this time has a gpu here.")).to_be_visible()


def test_what_comes_back_fits_on_a_phone_in_the_dark(open_page, daemon, start_job):
    page = open_questions(open_page, daemon, start_job, width=390, theme="dark")
    page.goto(f"{daemon.page}/#/questions?by=job")
    expect(page.get_by_role("link", name="1", exact=True)).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert_accessible(page)


def test_the_page_waits_for_an_answer_on_which_the_daemon_still_works(open_page, daemon, start_job):
    page = open_questions(open_page, daemon, start_job)
    asked = []

    def answer(route):
        asked.append(route.request.url)
        if len(asked) < 3:
            route.fulfill(status=503, headers={"X-Rollcall-Working": "1"},
                          body="the history still works on this query")
        else:
            route.continue_()

    page.route(re.compile("/api/v1/questions"), answer)
    page.goto(f"{daemon.page}/#/questions?by=cause")
    expect(page.get_by_role("row", name=re.compile("missing_rank"))).to_be_visible()
    expect(page.get_by_role("alert")).to_have_count(0)
    assert len(asked) == 3


def test_the_page_shows_why_a_question_is_refused(open_page, daemon, start_job):
    page = open_questions(open_page, daemon, start_job)
    page.route(re.compile("/api/v1/questions"), lambda route: route.fulfill(
        status=503, headers={"Retry-After": "5"}, body="too many connections"))
    page.goto(f"{daemon.page}/#/questions?by=cause")
    expect(page.get_by_role("alert")).to_have_text("too many connections")
