# SPDX-License-Identifier: Apache-2.0
"""What a viewer and an operator may do on the page, and jobs that share a name."""
import datetime
import re
import subprocess
import urllib.parse

import pytest
from conftest import ask, e2e
from playwright.sync_api import expect


@pytest.fixture
def tokens(tmp_path):
    """(file for the daemon, {role: token})"""
    path = tmp_path / "tokens"
    made = {role: subprocess.run([e2e.ROLLCALL, "token", "new", f"--file={path}", f"--name={role}",
                                  f"--role={role}"], capture_output=True, text=True,
                                 check=True).stdout.strip() for role in ("viewer", "operator")}
    return path, made


def test_only_an_operator_has_the_button_for_stacks(open_page, start_daemon, start_job, tokens):
    path, made = tokens
    daemon = start_daemon(f"--token-file={path}")
    start_job(daemon)
    for role in ("viewer", "operator"):
        page = open_page(f"{daemon.page}/?token={made[role]}#/incident/a-job-1")
        expect(page.locator(".session")).to_contain_text(f"token {role}")
        expect(page.locator(".cards .card").first).to_be_visible()
        # By now the page has asked the daemon what the viewer may do.
        page.wait_for_timeout(1000)
        button = page.get_by_role("button", name="take stacks now")
        expect(button).to_have_count(1 if role == "operator" else 0)
    button.click()
    expect(page.locator(".card", has_text="Taken")).to_contain_text("rank 0")


def serve_namesakes(page, daemon):
    """Answers for any tenant and attempt with the daemon's job, under this tenant and attempt."""
    view = ask(daemon, "job", job="a-job")
    attempts = [{"attempt": n, "state": "ended", "processes": 4, "processes_alive": 0,
                 "processes_died": 0} for n in range(9)]

    def answer(route):
        query = urllib.parse.parse_qs(urllib.parse.urlsplit(route.request.url).query)
        status = {**view["status"], "attempts": attempts,
                  "tenant": query.get("tenant", ["default"])[0],
                  "attempt": int(query.get("attempt", ["9"])[0])}
        status["summary"] = f"this is {status['tenant']} {status['attempt']}"
        route.fulfill(json={**view, "status": status})

    page.route(re.compile(r"/api/v1/job\?"), answer)


def test_a_job_is_shown_for_its_tenant_and_attempt_and_keeps_no_choice_of_a_namesake(
        open_page, daemon, start_job):
    start_job(daemon)
    page = open_page(f"{daemon.page}/#/history")
    serve_namesakes(page, daemon)
    rows = page.locator(".attempts li a")
    for query, words in (("", "default 9"), ("?attempt=8", "default 8"), ("?tenant=beta", "beta 9"),
                         ("?tenant=beta&attempt=8", "beta 8")):
        page.goto(f"{daemon.page}/#/job/a-job{query}")
        expect(page.locator(".sentence")).to_contain_text(f"this is {words}")
        expect(rows).to_have_count(5)
        page.get_by_role("button", name="Show 9").click()
        expect(rows).to_have_count(9)
    # The links to the attempts stay with the tenant.
    page.get_by_role("link", name="attempt 7").click()
    expect(page.locator(".sentence")).to_contain_text("this is beta 7")
    expect(rows).to_have_count(5)


def test_a_view_that_cannot_be_read_says_so_also_after_another_one(open_page, daemon, start_job):
    start_job(daemon)
    page = open_page(f"{daemon.page}/#/job/a-job")
    expect(page.locator(".sentence")).to_contain_text("rank 3")
    page.goto(f"{daemon.page}/#/job/a-job?tenant=nobody")
    expect(page.get_by_role("alert")).to_contain_text("no job")
    page.route(re.compile("/api/v1/incidents.*cause=deadlock"),
               lambda route: route.fulfill(status=503, body="the history is busy"))
    page.goto(f"{daemon.page}/#/history")
    expect(page.get_by_role("region", name="incidents").locator("tbody tr")).to_have_count(1)
    page.get_by_label("cause").select_option("deadlock")
    expect(page.get_by_role("alert")).to_contain_text("the history is busy")


def test_the_last_day_of_the_history_counts_in_full(open_page, daemon, start_job):
    start_job(daemon).kill()
    opened = ask(daemon, "incident", id="a-job-1")["opened_at"]
    day = datetime.date.fromisoformat(opened[:10])
    before, after = (day + datetime.timedelta(days=n) for n in (-1, 1))
    page = open_page(f"{daemon.page}/#/history", timezone_id="UTC")
    rows = page.get_by_role("region", name="incidents").locator("tbody tr")
    for label, chosen, count in (("To (UTC)", day, 1), ("To (UTC)", before, 0), ("To (UTC)", day, 1),
                                 ("From (UTC)", day, 1), ("From (UTC)", after, 0)):
        page.get_by_label(label).fill(chosen.isoformat())
        page.get_by_label(label).blur()
        expect(page.locator(".actions").first).to_contain_text(f"{count} incident")
        expect(rows).to_have_count(count)
    assert f"until={day}" in page.url and f"from={after}" in page.url


def test_the_days_of_the_history_are_those_of_the_chosen_zone(open_page, daemon):
    page = open_page(f"{daemon.page}/#/history", timezone_id="Europe/Berlin")
    expect(page.get_by_label("From (Europe/Berlin)")).to_be_visible()
    # The second day has 23 hours in Berlin.
    with page.expect_request(re.compile("/api/v1/.*from=2026-03-27T23.*until=2026-03-29T22")):
        page.goto(f"{daemon.page}/#/history?from=2026-03-28&until=2026-03-29")
    with page.expect_request(re.compile("/api/v1/.*from=2026-03-28T00.*until=2026-03-30T00")):
        page.locator(".zone select").select_option("utc")
    expect(page.get_by_label("From (UTC)")).to_have_value("2026-03-28")


@pytest.mark.parametrize("then, said", [("2026-01-15T11:00:00Z", "12:00:00 (Europe/Berlin, UTC+01:00)"),
                                        ("2026-07-15T11:00:00Z", "13:00:00 (Europe/Berlin, UTC+02:00)")])
def test_a_past_time_has_the_offset_of_its_own_season(open_page, daemon, start_job, then, said):
    start_job(daemon)
    view = ask(daemon, "job", job="a-job") | {"is_kept": True, "now": then}
    page = open_page(f"{daemon.page}/#/history", timezone_id="Europe/Berlin")
    page.route(re.compile(r"/api/v1/job\?"), lambda route: route.fulfill(json=view))
    page.goto(f"{daemon.page}/#/job/a-job?at={then}")
    expect(page.locator(".past")).to_contain_text(said)


def test_what_repeats_is_named_with_its_tenant(open_page, daemon):
    page = open_page(daemon.page)
    repeated = [{"host": "", "rank": 3, "job": "train", "tenant": tenant, "incidents": 2}
                for tenant in ("alpha", "beta", "default")]
    # A daemon of an older release names no tenant.
    repeated.append({"host": "", "rank": 4, "job": "old", "incidents": 2})
    page.route(re.compile("/api/v1/incidents"), lambda route: route.fulfill(
        json={"incidents": [], "total": 0, "repeated": repeated, "note": ""}))
    page.goto(f"{daemon.page}/#/history")
    lines = page.locator(".card", has_text="Repeated").locator("li")
    for n, name in enumerate(("alpha/train", "beta/train", "train", "old")):
        expect(lines.nth(n).get_by_role("link", name=name, exact=True)).to_be_visible()
    expect(lines.nth(0).get_by_role("link", name="alpha/train")).to_have_attribute(
        "href", "#/job/train?tenant=alpha")
