# SPDX-License-Identifier: Apache-2.0
"""Every view of a real daemon with a job that really hangs, compared with the API."""
import datetime
import http.server
import re
import signal
import threading
import urllib.parse
import urllib.request

import pytest
from axe_playwright_python.sync_playwright import Axe
from conftest import ask
from playwright.sync_api import expect


def test_a_list_of_more_jobs_than_one_answer_holds_has_pages(open_page, daemon, start_job):
    start_job(daemon)
    page = open_page(f"{daemon.page}/#/history")
    status = ask(daemon, "jobs")
    every = [{**status["jobs"][0], "name": f"job-{n:04}"} for n in range(1500)]

    def list_jobs(route):
        query = urllib.parse.parse_qs(urllib.parse.urlsplit(route.request.url).query)
        first, most = int(query["offset"][0]), int(query["limit"][0])
        route.fulfill(json={**status, "jobs": every[first:first + most], "jobs_total": len(every)})

    page.route(re.compile("/api/v1/jobs"), list_jobs)
    page.goto(f"{daemon.page}/#/")
    rows = page.get_by_role("region", name="jobs").locator("tbody tr")
    expect(rows).to_have_count(100)
    page.get_by_text("more follow as you scroll").scroll_into_view_if_needed()
    expect(rows).not_to_have_count(100)
    page.get_by_role("button", name="Show all").click()
    expect(rows).to_have_count(1000)
    expect(page.locator(".pager")).to_contain_text("1 to 1,000 of 1,500")
    page.get_by_role("button", name="next").click()
    expect(rows).to_have_count(500)
    expect(rows.last).to_contain_text("job-1499")
    assert "offset=1000" in page.url


def serve_jobs(page, daemon, jobs):
    """Shows these jobs on the list, each made from the daemon's own job."""
    status = ask(daemon, "jobs")
    every = [{name: value for name, value in {**status["jobs"][0], **job}.items()
              if value is not None} for job in jobs]
    page.route(re.compile("/api/v1/jobs"), lambda route: route.fulfill(
        json={**status, "jobs": every, "jobs_total": len(every)}))
    page.goto(f"{daemon.page}/#/")
    return page.get_by_role("region", name="jobs").locator("tbody tr")


def test_jobs_of_several_daemons_name_theirs_and_a_daemon_that_does_not_answer_is_named(
        open_page, daemon, start_job):
    start_job(daemon)
    page = open_page(f"{daemon.page}/#/")
    table = page.get_by_role("region", name="jobs")
    expect(table.locator("tbody tr")).to_have_count(1)
    expect(table.get_by_role("columnheader", name="Daemon")).to_have_count(0)
    status = ask(daemon, "jobs")
    jobs = [{**status["jobs"][0], "name": name, "daemon": owner}
            for name, owner in (("one", "east"), ("two", "west"))]
    page.route(re.compile("/api/v1/jobs"), lambda route: route.fulfill(
        json={**status, "jobs": jobs, "jobs_total": 2, "silent_daemons": ["north"]}))
    page.goto(f"{daemon.page}/#/history")
    page.goto(f"{daemon.page}/#/")
    expect(table.get_by_role("columnheader", name="Daemon")).to_have_count(1)
    expect(table.locator("tbody tr", has_text="two").locator("td").last).to_have_text("west")
    expect(page.get_by_role("alert")).to_contain_text("does not answer: north")
    page.get_by_role("searchbox").fill("west")
    expect(table.locator("tbody tr")).to_have_count(1)


def test_only_a_job_whose_processes_all_ended_in_good_order_is_over_well(open_page, daemon, start_job):
    start_job(daemon)
    over = {"summary": "", "warnings": [], "last_incident": None, "state": "ended", "processes": 4,
            "processes_alive": 0}
    page = open_page(f"{daemon.page}/#/history")
    rows = serve_jobs(page, daemon, [
        {**over, "name": "done", "processes_died": 0, "processes_exited": 4},
        {**over, "name": "killed", "processes_died": 4, "processes_exited": 0},
        {**over, "name": "gone", "processes_died": 0, "processes_exited": 3}])
    for name, state in (("done", "✓ ended"), ("killed", "✗ ended, died"),
                        ("gone", "• ended, exit unknown")):
        expect(rows.filter(has_text=name).locator(".state")).to_have_text(state)


def test_a_job_that_flaps_says_so_on_the_list_of_jobs(open_page, daemon, start_job):
    start_job(daemon)
    page = open_page(f"{daemon.page}/#/history")
    last = {"id": "a-1", "state": "confirmed", "cause": "missing_rank", "summary": "rank 3 is absent",
            "opened_at": "2026-11-28T19:53:00Z", "acknowledged_by": "alice",
            "repeat": "2nd time in 1 min, same rank and line"}
    rows = serve_jobs(page, daemon, [{"name": "a", "state": "hung", "summary": "rank 3 is absent",
                                      "last_incident": last}])
    expect(rows.first).to_contain_text("(2nd time in 1 min, same rank and line; acknowledged by alice)")


def test_a_job_that_waits_for_another_one_leads_to_its_incident(open_page, daemon, start_job):
    start_job(daemon)
    page = open_page(f"{daemon.page}/#/history")
    rows = serve_jobs(page, daemon, [
        {"name": "trainer", "summary": "", "state": "waiting",
         "waits_for": {"tenant": "default", "job": "engine", "attempt": 0, "incident": "engine-1",
                       "summary": "rank 1 is late"}}])
    expect(rows.first).to_contain_text("Waits for job engine (engine-1): rank 1 is late")
    expect(rows.first.get_by_role("link", name="engine-1")).to_have_attribute(
        "href", re.compile("incident/engine-1"))


def test_jobs_that_hang_come_first_and_the_list_is_searched_filtered_and_sorted(
        open_page, daemon, start_job):
    start_job(daemon)
    calm = {"summary": "", "warnings": [], "last_incident": None}
    page = open_page(f"{daemon.page}/#/history")
    rows = serve_jobs(page, daemon, [
        {**calm, "name": "a-runs", "state": "running", "ranks": 64, "hosts": ["node-17"]},
        {"name": "b-hangs"}, {**calm, "name": "c-done", "state": "ended"}])
    expect(rows.nth(0)).to_contain_text("b-hangs")
    expect(rows.nth(2)).to_contain_text("c-done")
    expect(page.locator("main")).to_contain_text("1 hung, 1 running, 1 ended")
    page.get_by_role("button", name="Ranks").click()
    expect(rows.nth(0)).to_contain_text("a-runs")
    assert "sort=ranks" in page.url
    page.get_by_role("searchbox").fill("NODE-17")
    expect(rows).to_have_count(1)
    expect(rows).to_contain_text("a-runs")
    page.get_by_role("searchbox").fill("nothing-like-it")
    expect(page.locator("main")).to_contain_text("No job matches.")
    page.get_by_role("searchbox").fill("")
    page.get_by_label("state").select_option("hung")
    expect(rows).to_have_count(1)
    page.reload()  # the address keeps the choice
    expect(rows).to_have_count(1)
    expect(rows).to_contain_text("b-hangs")


def test_the_most_expensive_job_that_stands_still_comes_first_and_idle_gpus_are_counted(
        open_page, daemon, start_job):
    start_job(daemon)
    now = datetime.datetime.fromisoformat(ask(daemon, "jobs")["now"][:19] + "+00:00")

    def hangs(name, ranks, seconds, state="hung", gpus=None):
        opened = (now - datetime.timedelta(seconds=seconds)).isoformat()
        return {"name": name, "ranks": ranks, "gpus": ranks if gpus is None else gpus, "state": state,
                "last_incident": {"id": f"{name}-1", "state": "confirmed", "cause": "deadlock",
                                  "summary": "", "opened_at": opened, "acknowledged_by": "",
                                  "repeat": ""}}
    page = open_page(f"{daemon.page}/#/history")
    rows = serve_jobs(page, daemon, [
        hangs("a-long-small", 4, 7200), hangs("b-large", 16384, 3600),
        hangs("c-new", 64, 60, "suspected"), {"name": "d-runs", "state": "running", "ranks": 9000,
                                              "summary": "", "last_incident": None}])
    for row, name in enumerate(("b-large", "a-long-small", "c-new", "d-runs")):
        expect(rows.nth(row)).to_contain_text(name)
    # 16,384 ranks for 1 h, 4 for 2 h, 64 for 1 min.
    expect(page.locator("main > .sentence")).to_have_text(re.compile(
        r"^16,452 GPUs idle in 3 jobs; 16,\d{3} GPU-hours lost so far$"))
    serve_jobs(page, daemon, [hangs("a-long-small", 4, 7200, gpus=0), hangs("b-large", 16384, 3600)])
    expect(page.locator("main > .sentence")).to_have_text(re.compile(
        r"^16,388 ranks idle in 2 jobs; 16,\d{3} rank-hours lost so far$"))


def test_a_phone_shows_the_verdict_of_a_job_without_scrolling_sideways(
        open_page, daemon, start_job):
    start_job(daemon)
    page = open_page(daemon.page)
    page.set_viewport_size({"width": 390, "height": 844})
    verdict = page.locator("tr", has_text="a-job").locator(".wide")
    expect(verdict).to_contain_text("has not called AllReduce")
    box = verdict.bounding_box()
    assert box["x"] >= 0 and box["x"] + box["width"] <= 390 and box["y"] < 844, box


def test_a_job_that_was_killed_while_it_hung_says_so_with_its_verdict(
        open_page, daemon, start_job):
    start_job(daemon).kill()
    page = open_page(daemon.page)
    row = page.locator("tr", has_text="a-job")
    expect(row.locator(".state")).to_contain_text("ended hung")
    expect(row).to_contain_text("Ended while it hung: rank 3")
    page.goto(f"{daemon.page}/#/job/a-job")
    expect(page.locator(".sentence")).to_contain_text("The job ended while it hung: rank 3")


def test_a_rank_that_waits_on_another_communicator_is_not_called_idle(
        open_page, daemon, start_job):
    start_job(daemon, "two_communicators_in_other_orders", ranks=2, said="deadlock|each")
    page = open_page(f"{daemon.page}/#/job/a-job")
    expect(page.locator(".sentence")).to_contain_text("wait")
    expect(page.locator(".words").first).to_contain_text("waiting on another communicator")
    expect(page.locator("main")).not_to_contain_text("not waiting")


def test_the_map_is_walked_by_keys_and_leads_to_a_ranks_calls(open_page, daemon, start_job):
    start_job(daemon)
    page = open_page(f"{daemon.page}/#/job/a-job")
    canvas = page.locator(".map canvas").first
    canvas.focus()
    expect(page.locator(".map .hint").first).to_contain_text("rank 3")
    canvas.press("ArrowLeft")
    expect(page.locator(".map .hint").first).to_contain_text("rank 2, ")
    expect(page.locator(".map .hint").first).to_contain_text("waiting for others")
    canvas.press("n")
    expect(page.locator(".map .hint").first).to_contain_text("rank 3")
    canvas.press("ArrowLeft")
    canvas.press("Enter")
    expect(page.locator("#calls input")).to_have_value("2")
    assert "ranks=2" in page.url
    page.locator("#calls summary").click()
    calls = ask(daemon, "calls", job="a-job", ranks="2")["ranks"][0]["communicators"][0]["calls"]
    waits = page.get_by_role("region", name="calls").locator("tr.waits")
    expect(waits).to_contain_text(str(calls[-1]["call"]["position"]))
    expect(waits).to_contain_text("waits")


def test_a_hang_comes_onto_the_screen_by_itself(open_page, daemon, start_job):
    page = open_page(daemon.page)
    expect(page.locator("main")).to_contain_text("No job has connected yet")
    start_job(daemon)
    expect(page.locator("tr", has_text="a-job").locator(".state")).to_contain_text("hung")
    # The wait grows, though nothing else changes.
    page.wait_for_function("was => document.querySelector('tbody').innerText !== was",
                           arg=page.locator("tbody").inner_text())


def test_an_incident_counts_the_ranks_that_its_lists_leave_out(open_page, daemon, start_job):
    start_job(daemon)
    page = open_page(f"{daemon.page}/#/history")
    incident = ask(daemon, "incident", id="a-job-1")
    incident["verdicts"][0].update(
        culprits_total=5000, culprit_ranks="0-4999", culprit_hosts_total=625,
        waiting_total=11384, waiting_rank_ranges="5000-16383")
    page.route(re.compile(r"/api/v1/incident\?"), lambda route: route.fulfill(json=incident))
    page.goto(f"{daemon.page}/#/incident/a-job-1")
    cards = page.locator(".cards .card")
    expect(cards.nth(0)).to_contain_text("Culprits (5,000)")
    expect(cards.nth(0)).to_contain_text("ranks 0-4999")
    expect(cards.nth(0)).to_contain_text("625 in all")
    expect(cards.nth(1)).to_contain_text("Waiting (11,384)")
    expect(cards.nth(1)).to_contain_text("ranks 5000-16383, for")


def test_a_history_that_cannot_be_read_is_reported(open_page, daemon):
    page = open_page(daemon.page)
    page.route(re.compile("/api/v1/incidents"), lambda route: route.fulfill(
        json={"incidents": [], "total": 0, "repeated": [], "note": "cannot read the history"}))
    page.goto(f"{daemon.page}/#/history")
    expect(page.get_by_role("alert")).to_contain_text("cannot read the history")


def test_stacks_are_taken_again_and_the_verdict_is_copied(open_page, daemon, start_job):
    start_job(daemon)
    page = open_page(f"{daemon.page}/#/incident/a-job-1")
    page.get_by_role("button", name="take stacks now").click()
    expect(page.locator(".card", has_text="Taken")).to_contain_text("rank 0")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.get_by_role("button", name="copy as text").click()
    expect(page.locator(".actions [role=status]")).to_have_text("Copied")
    copied = page.evaluate("navigator.clipboard.readText()")
    assert re.match(r"a-job: rank 3 .* has not called AllReduce", copied)
    assert "cause missing_rank, certain" in copied
    with page.expect_download() as download:
        page.get_by_role("link", name="download the report").click()
    report = download.value.path().read_text()
    assert report.startswith("<!doctype html>") and "has not called AllReduce" in report


def test_a_report_shows_the_same_from_a_disk_and_on_paper(open_page, daemon, start_job, tmp_path):
    start_job(daemon)
    page = open_page(f"{daemon.page}/report?id=a-job-1")
    expect(page.locator("h1")).to_contain_text("has not called AllReduce")
    expect(page.locator(".icicle .frame").first).to_be_visible()
    report = next((tmp_path / "here").glob("*/report.html"))
    page = open_page(report.as_uri(), theme="dark")
    expect(page.locator("h1")).to_contain_text("has not called AllReduce")
    expect(page.locator(".icicle .frame").first).to_be_visible()
    expect(page.locator(".cards .card").nth(1)).to_contain_text("ranks 0-2")
    assert page.locator("main").count() == 1
    page.emulate_media(media="print")
    assert page.pdf()[:5] == b"%PDF-"
    # Without script too it says all.
    plain = page.context.browser.new_context(java_script_enabled=False)
    bare = plain.new_page()
    bare.goto(report.as_uri())
    expect(bare.locator("h1")).to_contain_text("has not called AllReduce")
    expect(bare.locator("main")).to_contain_text("Validate()")
    plain.close()


def test_two_histories_stand_side_by_side_where_ranks_part(open_page, daemon, start_job):
    start_job(daemon, "one_rank_broadcasts", said="Broadcast")
    page = open_page(f"{daemon.page}/#/incident/a-job-1")
    verdict = ask(daemon, "incident", id="a-job-1")["verdicts"][0]
    differing = [line for line in verdict["histories"] if line["differs"]]
    expect(page.locator("table.histories tr.differs")).to_have_count(len(differing))
    expect(page.locator("table.histories tr.differs").first).to_contain_text("Broadcast")
    expect(page.locator("table.histories")).to_contain_text("AllReduce")
    expect(page.locator(".cards mark").first).to_be_visible()


def test_a_cycle_of_waits_is_drawn(open_page, daemon, start_job):
    start_job(daemon, "two_communicators_in_other_orders", ranks=2, said="deadlock|each")
    page = open_page(f"{daemon.page}/#/incident/a-job-1")
    chain = ask(daemon, "incident", id="a-job-1")["verdicts"][0]["chain"]
    expect(page.locator(".waits-graph .edge")).to_have_count(len(chain))
    expect(page.locator(".waits-list li")).to_have_count(len(chain))


def test_history_is_filtered_what_repeats_is_pointed_out_and_two_are_compared(
        open_page, daemon, start_job):
    for _ in range(2):
        start_job(daemon, name="one").kill()
    start_job(daemon, "one_rank_broadcasts", name="other", said="Broadcast").kill()
    page = open_page(f"{daemon.page}/#/history")
    rows = page.get_by_role("region", name="incidents").locator("tbody tr")
    expect(rows).to_have_count(3)
    expect(page.locator(".card", has_text="Repeated")).to_contain_text("Rank 3 of one")
    page.get_by_label("cause").select_option("operation_mismatch")
    expect(rows).to_have_count(1)
    assert "cause=operation_mismatch" in page.url
    page.get_by_label("cause").select_option("")
    expect(rows).to_have_count(3)
    page.get_by_label("compare one-1").check()
    page.get_by_label("compare other-1").check()
    page.get_by_role("link", name="compare the two").click()
    expect(page.locator("tr.differs", has_text="cause")).to_contain_text("missing_rank")
    expect(page.locator("tr.differs", has_text="cause")).to_contain_text("operation_mismatch")
    stacks = page.get_by_role("region", name="stacks of one-1")
    expect(stacks).to_contain_text("Validate()")
    expect(page.get_by_role("region", name="stacks of other-1")).not_to_contain_text("Validate()")


def test_a_lost_connection_is_shown_and_healed(open_page, start_daemon, start_job):
    daemon = start_daemon()
    start_job(daemon)
    page = open_page(f"{daemon.page}/#/job/a-job")
    expect(page.locator(".link")).to_contain_text("Live")
    port = daemon.page.rsplit(":", 1)[1]
    daemon.kill(signal.SIGKILL)
    expect(page.locator(".link-lost")).to_contain_text("Connection lost")
    expect(page.locator(".page.old")).to_be_visible()
    expect(page.locator("main")).to_contain_text("Not up to date")
    again = start_daemon(f"--http=127.0.0.1:{port}", f"--listen={daemon.address}")
    expect(page.locator(".link")).to_contain_text("Live", timeout=60_000)
    expect(page.locator(".page.old")).to_have_count(0)
    assert again.page == daemon.page


HOSTILE = "<img src=x onerror=alert(1)>/\"'&\u202e%2e"
SHOWN = HOSTILE.replace("\u202e", "?")  # the daemon takes what turns the direction of writing


def test_text_from_jobs_is_only_text(open_page, daemon, big_job):
    big_job(daemon, "--ranks=256", f"--job={HOSTILE}", "--hang-after=2", "--hang-rank=100")
    page = open_page(daemon.page)
    link = page.get_by_role("link", name=SHOWN, exact=True).first
    expect(link).to_be_visible()
    link.click()
    expect(page.locator("h1")).to_contain_text(SHOWN)
    expect(page.get_by_role("region", name="processes")).to_contain_text("<b>large</b>.yaml")
    page.get_by_role("link", name="the incident").click(timeout=60_000)
    expect(page.locator("h1")).to_contain_text("rank 100")
    page.goto(f"{daemon.page}/#/history")
    expect(page.locator("tbody tr").first).to_contain_text(SHOWN)
    assert page.locator("img").count() == 0


def test_a_job_of_sixteen_thousand_ranks_is_legible_and_small(open_page, daemon, big_job):
    big_job(daemon, "--hang-after=3")
    page = open_page(f"{daemon.page}/#/job/big")
    expect(page.locator(".sentence")).to_contain_text("rank 4711", timeout=60_000)
    world = page.locator(".map").first
    expect(world.locator(".words")).to_contain_text("not waiting: rank 4711")
    expect(world.locator(".words")).to_contain_text("ranks 0-4710,4712-16383 (16,383)")
    # All wait in the world's call: the other maps show nothing of their own.
    folded = page.locator("details.folded summary")
    expect(folded).to_contain_text("on which no rank waits or lags")
    short = page.evaluate("document.documentElement.scrollHeight")
    folded.click()
    for kind in ("tp", "pp", "dp"):
        expect(page.locator(".map h3", has_text=kind).first).to_be_visible()
    assert short < page.evaluate("document.documentElement.scrollHeight")
    assert page.evaluate("document.querySelectorAll('*').length") < 3000
    page.get_by_label("one cell per host").check()
    page.locator(".map canvas").first.focus()
    expect(world.locator(".hint")).to_contain_text("node-588")
    expect(world.locator(".hint")).to_contain_text("a culprit")


VIEWS = ["", "#/job/a-job", "#/incident/a-job-1", "#/history", "#/hosts", "#/compare/a-job-1/a-job-1"]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_all_views_are_for_everybody(open_page, daemon, start_job, theme):
    start_job(daemon)
    for view in VIEWS:
        page = open_page(f"{daemon.page}/{view}", theme=theme)
        expect(page.locator("h1")).to_be_visible()
        page.wait_for_timeout(500)
        found = Axe().run(page, options={"runOnly": ["wcag2a", "wcag2aa", "wcag21aa"]})
        assert found.violations_count == 0, f"{view} {theme}\n{found.generate_report()}"


@pytest.mark.parametrize("view", VIEWS)
def test_views_fit_a_phone(open_page, daemon, start_job, view):
    start_job(daemon)
    page = open_page(f"{daemon.page}/{view}", width=360, height=740)
    expect(page.locator("h1")).to_be_visible()
    page.wait_for_timeout(500)
    assert page.evaluate("document.documentElement.scrollWidth") <= 360


class Proxy(http.server.BaseHTTPRequestHandler):
    """Serves a daemon below /team/rollcall/."""
    upstream = ""

    def do_GET(self):
        path = self.path.removeprefix("/team/rollcall")
        if path == self.path:
            return self.send_error(404)
        request = urllib.request.Request(self.upstream + path)
        try:
            with urllib.request.urlopen(request, timeout=120) as answer:
                self.send_response(answer.status)
                for name in ("Content-Type", "Content-Encoding", "Content-Security-Policy"):
                    if answer.headers.get(name):
                        self.send_header(name, answer.headers[name])
                self.end_headers()
                while piece := answer.read1(65536):
                    self.wfile.write(piece)
                    self.wfile.flush()
        except (BrokenPipeError, ConnectionResetError):
            pass
        return None

    def log_message(self, *_):
        pass


def test_it_works_below_a_path(open_page, daemon, start_job):
    start_job(daemon)
    Proxy.upstream = daemon.page
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Proxy)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    page = open_page(f"http://127.0.0.1:{server.server_port}/team/rollcall/")
    page.get_by_role("link", name="a-job").first.click()
    expect(page.locator(".sentence")).to_contain_text("rank 3")
    expect(page.locator(".link")).to_contain_text("Live")
    server.shutdown()


def test_the_theme_that_was_chosen_stays(open_page, daemon):
    page = open_page(daemon.page)
    light = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.get_by_label("theme").select_option("dark")
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert light != dark
    page.reload()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == dark
    # The theme follows the system, also when the system changes.
    page.get_by_label("theme").select_option("")
    expect(page.locator("body")).to_have_css("background-color", light)
    page.emulate_media(color_scheme="dark")
    expect(page.locator("body")).to_have_css("background-color", dark)
