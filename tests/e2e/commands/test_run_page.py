# SPDX-License-Identifier: Apache-2.0
"""The live page of `rollcall run`: the address that it prints has a token, which lets other users of
the host in. Browsers are a program with cookies here, and the headers that real ones send."""
import json
import os
import re
import signal
import subprocess
import sys

import pytest
from conftest import AS_NOBODY, ROLLCALL, VICTIMS, needs_another_user, rollcall, seen_by_ps, wait_for
from terminal import Terminal

# The tests share a run.
pytestmark = pytest.mark.xdist_group("run_page")

# Opens addresses one after the other, with one set of cookies, and prints what it got.
BROWSER = """
import http.cookiejar, json, sys, urllib.error, urllib.request
cookies = http.cookiejar.CookieJar()
browser = urllib.request.build_opener(urllib.request.ProxyHandler({}),
                                      urllib.request.HTTPCookieProcessor(cookies))
seen = []
for address, headers, data in json.load(sys.stdin):
    request = urllib.request.Request(address, headers=headers, data=data and data.encode())
    try:
        answer = browser.open(request, timeout=120)
    except urllib.error.HTTPError as error:
        answer = error
    seen.append({"status": answer.status, "address": answer.url,
                 "text": answer.read().decode(errors="replace"),
                 "cookies": [[sorted(cookie._rest), cookie._rest.get("SameSite")]
                             for cookie in cookies]})
print(json.dumps(seen))
"""
# What browsers send when a person opens an address, and when a script of the page asks for data.
OPENED = {"Accept": "text/html,*/*;q=0.8", "Sec-Fetch-Site": "none", "Sec-Fetch-Mode": "navigate",
          "Sec-Fetch-Dest": "document"}
ASKED = {"Accept": "*/*", "Sec-Fetch-Site": "same-origin", "Sec-Fetch-Mode": "cors",
         "Sec-Fetch-Dest": "empty"}


def browse(*steps, who=()):
    """What a browser of that user got: a list with status, address, text and cookies of each."""
    steps = [(*step, None) if len(step) == 2 else step for step in steps]
    done = subprocess.run([*who, "/usr/bin/python3" if who else sys.executable, "-c", BROWSER],
                          input=json.dumps(steps), capture_output=True, text=True, timeout=120,
                          check=False, cwd="/")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


class LiveRun:
    """A job under `rollcall run` on a terminal, and the address that it has printed."""

    def __init__(self, folder):
        self.reports = folder / "reports"
        self.terminal = Terminal(
            [ROLLCALL, "run", "--sim", "--hang-after=3s", f"--report-dir={self.reports}", "--",
             VICTIMS / "ranks", "-n", "4", "--keep-going", "--", VICTIMS / "one_rank_stops_calling"],
            {**os.environ, "TERM": "xterm", "ROLLCALL_JOB": "a-job"})
        self.terminal.read_until(b"`Validate`")  # it hangs
        said = self.terminal.text.decode()
        self.address = re.search(r"live page: (http://127\.0\.0\.1:\d+/\?token=rollcall_[\w-]{43})\r",
                                 said).group(1)
        self.page, _, self.token = self.address.partition("?token=")

    def end(self):
        self.terminal.process.send_signal(signal.SIGTERM)
        self.terminal.process.wait(timeout=120)


@pytest.fixture(scope="module")
def live_run(tmp_path_factory):
    run = LiveRun(tmp_path_factory.mktemp("live-run"))
    yield run
    run.end()


@needs_another_user
def test_the_printed_address_logs_a_browser_in(live_run):
    page = live_run.page
    first, jobs, who, again = browse(
        (live_run.address, OPENED), (f"{page}api/v1/jobs", ASKED), (f"{page}api/v1/whoami", ASKED),
        (page, OPENED), who=AS_NOBODY)
    assert first["status"] == 200
    assert first["address"] == page, "the token does not stay in the address, nor in the history"
    (attributes, same_site), = first["cookies"]
    assert "HttpOnly" in attributes and same_site == "Strict"
    assert jobs["status"] == 200 and "a-job" in jobs["text"]
    assert json.loads(who["text"])["has_session"]
    assert again["status"] == 200 and again["address"] == page, "once is enough"


@needs_another_user
def test_without_the_printed_token_another_user_gets_nothing(live_run):
    page = live_run.page
    paths = ["api/v1/jobs", "api/v1/whoami", "api/v1/status?job=a-job", "api/v1/incidents",
             "api/v1/events?job=a-job", "metrics", "report?id=a-job-1", "no-such-address"]
    got = browse(*((page + path, ASKED) for path in paths), who=AS_NOBODY)
    assert [one["status"] for one in got] == [401] * len(paths)
    made_up = "rollcall_" + "A" * 43
    more = browse((page, OPENED), (f"{page}?token={made_up}", {**OPENED, "Accept": "*/*"}),
                  (f"{page}api/v1/jobs", {"Authorization": f"Bearer {made_up}"}),
                  (f"{page}api/v1/stacks?job=a-job", {**ASKED, "X-Rollcall": "1"}, "{}"),
                  who=AS_NOBODY)
    assert (more[0]["status"], more[0]["address"]) == (200, f"{page}login")
    assert [one["status"] for one in more[1:]] == [401, 401, 401]
    for one in [*got, *more]:
        assert "a-job" not in one["text"] and "rank 3" not in one["text"] and not one["cookies"], one


def test_the_owner_of_the_run_needs_no_token(live_run):
    jobs, = browse((f"{live_run.page}api/v1/jobs", ASKED))
    assert jobs["status"] == 200 and "a-job" in jobs["text"] and not jobs["cookies"]


# Another page has the address in it: it has read it from a log, say.
@pytest.mark.parametrize("site", ["none", "same-origin", "cross-site"])
@pytest.mark.parametrize("what, mode", [("image", "no-cors"), ("iframe", "navigate"),
                                        ("frame", "navigate"), ("object", "navigate"),
                                        ("script", "no-cors"), ("empty", "cors")])
def test_a_page_that_loads_the_address_logs_nobody_in(live_run, what, mode, site):
    loaded, = browse((live_run.address, {"Accept": "text/html,*/*", "Sec-Fetch-Site": site,
                                         "Sec-Fetch-Mode": mode, "Sec-Fetch-Dest": what}))
    assert loaded["status"] == 403
    assert not loaded["cookies"] and "a-job" not in loaded["text"]


def test_a_link_on_another_site_logs_in_only_after_a_click(live_run):
    page = live_run.page
    followed = {**OPENED, "Sec-Fetch-Site": "cross-site"}
    form = {**OPENED, "Sec-Fetch-Site": "same-origin", "Origin": page.rstrip("/"),
            "Content-Type": "application/x-www-form-urlencoded"}
    shown, clicked = browse((live_run.address, followed),
                            (f"{page}login", form, f"user=&token={live_run.token}"))
    assert shown["status"] == 200 and not shown["cookies"]
    assert "Log in only if you trust that page" in " ".join(shown["text"].split())
    assert clicked["status"] == 200 and clicked["address"] == page and clicked["cookies"]


def test_the_token_is_on_the_terminal_only(live_run):
    seen = seen_by_ps(live_run.terminal.process.pid)
    assert "one_rank_stops_calling\0" in seen and "ROLLCALL_JOB=a-job" in seen
    assert live_run.token not in seen
    wait_for(lambda: list(live_run.reports.glob("*/report.html")))
    for path in live_run.reports.rglob("*"):
        assert path.is_dir() or live_run.token not in path.read_text(errors="replace"), path


def test_a_run_whose_output_goes_into_a_file_prints_no_token(tmp_path):
    ended = rollcall("run", "--sim", f"--report-dir={tmp_path / 'here'}", "--", "true")
    assert ended.returncode == 0
    assert "token" not in ended.stdout + ended.stderr
