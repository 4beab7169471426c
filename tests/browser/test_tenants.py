# SPDX-License-Identifier: Apache-2.0
"""A person of one tenant on the page of a daemon where another tenant's job hangs."""
import json
import re
import socket
import subprocess
import urllib.request

import pytest
from conftest import e2e
from playwright.sync_api import expect
from processes import Service, wait_for

OWN, OTHER = "alpha-job", "beta-secret"


@pytest.fixture
def site(start_daemon, tmp_path):
    """(daemon, token of a viewer of alpha, id of beta's incident)"""
    tokens = {}
    for tenant in ("alpha", "beta"):
        tokens[tenant] = subprocess.run(
            [e2e.ROLLCALL, "token", "new", f"--file={tmp_path / 'tokens'}", f"--name={tenant}",
             "--role=viewer", f"--tenant={tenant}"], capture_output=True, text=True,
            check=True).stdout.strip()
    daemon = start_daemon(f"--token-file={tmp_path / 'tokens'}")

    def incident(tenant):
        request = urllib.request.Request(f"{daemon.page}/api/v1/incidents",
                                         headers={"Authorization": f"Bearer {tokens[tenant]}"})
        with urllib.request.urlopen(request, timeout=120) as answer:
            found = json.load(answer)["incidents"]
        return next((i["id"] for i in found if i.get("confirmed_at")), None)

    jobs = [Service([e2e.ROLLCALL, "run", "--sim", f"--daemon={daemon.address}",
                         f"--report-dir={tmp_path / 'here'}", "--", e2e.VICTIMS / "ranks", "-n",
                         "2", "--keep-going", "--", e2e.VICTIMS / "one_rank_stops_calling"],
                        env={"ROLLCALL_JOB": job, "ROLLCALL_TENANT": tenant})
            for tenant, job in (("alpha", OWN), ("beta", OTHER))]
    try:
        wait_for(lambda: incident("alpha") and incident("beta"))
        yield daemon, tokens["alpha"], incident("beta")
    finally:
        for job in jobs:
            job.kill()


def test_a_viewer_sees_nothing_of_another_tenant(browser, site):
    daemon, token, theirs = site
    context = browser.new_context()
    page, seen = context.new_page(), []

    def record(route):
        answer = route.fetch()
        if answer.ok:
            seen.append(answer.text())
        route.fulfill(response=answer)

    page.route(re.compile("/api/v1/(?!events)"), record)
    page.goto(f"{daemon.page}/?token={token}")
    expect(page.locator("tr", has_text=OWN).first).to_contain_text("hung")
    expect(page.locator(".session")).to_contain_text("token alpha")
    page.goto(f"{daemon.page}/#/history")
    expect(page.locator("tr", has_text=OWN).first).to_be_visible()
    seen.append(page.content())
    # Both jobs run on this host.
    page.goto(f"{daemon.page}/#/host/{socket.gethostname()}")
    expect(page.get_by_role("heading", name=OWN)).to_be_visible()
    expect(page.locator(".sentence")).to_contain_text("in 1 of 1 incident")
    seen.append(page.content())
    # By their names, as from a link in a message, they do not exist.
    for address, words in ((f"#/job/{OTHER}", "no job"), (f"#/job/{OTHER}/rank/0", "no job"),
                           (f"#/incident/{theirs}", "no incident")):
        page.goto(f"{daemon.page}/{address}")
        expect(page.get_by_role("alert").first).to_contain_text(words)
    assert any(OWN in text for text in seen)
    for text in seen:
        assert OTHER not in text and theirs not in text
    context.close()
