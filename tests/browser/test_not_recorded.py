# SPDX-License-Identifier: Apache-2.0
"""Jobs that run without the library, on the page: an operator has one looked at with a button, and reads there which
rank is at fault."""
import os
import subprocess
import sys

import pytest
from axe_playwright_python.sync_playwright import Axe
from conftest import BUILD, ask, e2e
from playwright.sync_api import expect
from processes import wait_for

# The agent sees the processes of this namespace only, as those of its host.
HOST = ["unshare", "--pid", "--mount", "--fork", "--mount-proc", "--kill-child", "--"]

# Ranks that meet by sockets, and write a log. Rank 1 waits for a pipe without a writer.
PROGRAM = """
import os, socket
def wait_for_data():
    reads, writes = os.pipe()
    os.read(reads, 1)
def meet():
    a, b = socket.socketpair()
    a.recv(1)
print("step 7", flush=True)
wait_for_data() if os.environ["RANK"] == "1" else meet()
"""

# $1: the interpreter; $2: the program; the rest: the agent.
START = """
interpreter=$1 program=$2
shift 2
for rank in 0 1 2; do
  RANK=$rank WORLD_SIZE=3 MASTER_ADDR=127.0.0.1 MASTER_PORT=29500 "$interpreter" "$program" >"$program.log.$rank" &
done
exec "$@"
"""


def can_unshare():
    return os.geteuid() == 0 and subprocess.run([*HOST, "true"], capture_output=True).returncode == 0


pytestmark = pytest.mark.skipif(not can_unshare(), reason="needs root and the right to make pid and mount namespaces")


@pytest.fixture
def job(daemon, tmp_path):
    """The name of a job of three ranks, of which rank 1 is stuck, once the daemon lists it."""
    program = tmp_path / "train.py"
    program.write_text(PROGRAM)
    (tmp_path / "agent").mkdir()
    service = e2e.Service([*HOST, "sh", "-c", START, "sh", sys.executable, str(program),
                           BUILD / "bin" / "rollcall-agent", f"--daemon={daemon.address}",
                           f"--dir={tmp_path / 'agent'}", "--host=the-host"])
    wait_for(lambda: [one["ranks"] for one in ask(daemon, "jobs")["unrecorded"]] == [3], 60)
    yield "train.py"
    service.process.kill()
    service.process.wait(timeout=120)


def row_of(page, job):
    return page.get_by_role("region", name="jobs that are not recorded").locator("tbody tr", has_text=job)


def assert_accessible(page):
    expect(page.locator(".old")).to_have_count(0)  # the colours of a lost connection are paler
    found = Axe().run(page, options={"runOnly": ["wcag2a", "wcag2aa", "wcag21aa"]})
    assert found.violations_count == 0, found.generate_report()


def test_an_operator_has_a_job_looked_at_with_a_button_and_reads_who_is_at_fault(open_page, daemon, job):
    page = open_page(f"{daemon.page}/#/")
    expect(page.get_by_role("heading", name="Not recorded")).to_be_visible()
    expect(page.locator("main")).to_contain_text("1 distributed job runs without Rollcall's library")
    row = row_of(page, job)
    expect(row).to_contain_text("not recorded")
    expect(row.locator("[data-label=ranks]")).to_have_text("3")
    expect(row.get_by_role("link", name="the-host")).to_be_visible()
    row.get_by_role("button", name="Diagnose").click()
    expect(row.get_by_role("alert")).to_contain_text("wait_for_data")
    expect(row.get_by_role("alert")).to_contain_text("rank 1 ")
    expect(row.get_by_role("heading", name="What to do")).to_be_visible()
    expect(row.get_by_role("heading", name="Where the log ends")).to_be_visible()
    expect(row).to_contain_text("rank 1 on the-host: ")
    expect(row.locator("pre").first).to_have_text("step 7")
    expect(row.get_by_role("button", name="Diagnose")).to_be_enabled()
    assert_accessible(page)


def test_the_page_of_hosts_shows_the_job_and_has_it_looked_at_too(open_page, daemon, job):
    page = open_page(f"{daemon.page}/#/hosts")
    row = row_of(page, job)
    expect(row.get_by_role("link", name="the-host")).to_be_visible()
    row.get_by_role("button", name="Diagnose").click()
    expect(row.get_by_role("alert")).to_contain_text("wait_for_data")


def test_a_look_that_is_refused_says_why_and_may_be_tried_again(open_page, daemon, job):
    page = open_page(f"{daemon.page}/#/")
    page.route("**/api/v1/diagnose?*", lambda route: route.fulfill(status=503, json={"error": "no agent answers"}))
    row = row_of(page, job)
    row.get_by_role("button", name="Diagnose").click()
    expect(row.get_by_role("alert")).to_contain_text("no agent answers")
    page.unroute("**/api/v1/diagnose?*")
    row.get_by_role("button", name="Diagnose").click()
    expect(row.get_by_role("alert")).to_contain_text("wait_for_data")


def test_a_viewer_sees_the_job_but_no_button(open_page, daemon, job):
    viewer = {"name": "a viewer", "roles": ["viewer"], "may_act": False, "has_session": False, "insecure": False}
    page = open_page(f"{daemon.page}/#/history")
    page.route("**/api/v1/whoami*", lambda route: route.fulfill(json=viewer))
    page.goto(f"{daemon.page}/#/")
    expect(row_of(page, job)).to_be_visible()
    expect(page.get_by_role("button", name="Diagnose")).to_have_count(0)
