# SPDX-License-Identifier: Apache-2.0
"""The page of all hosts, and what a host showed, in sentences."""
import re

import pytest
from axe_playwright_python.sync_playwright import Axe
from conftest import ask
from playwright.sync_api import expect


def test_all_hosts_are_listed_with_their_jobs(open_page, daemon, start_job):
    start_job(daemon)
    page = open_page(f"{daemon.page}/#/")
    page.get_by_role("link", name="Hosts", exact=True).click()
    host = ask(daemon, "jobs")["jobs"][0]["hosts"][0]
    row = page.get_by_role("region", name="hosts").locator("tbody tr")
    expect(row).to_have_count(1)
    expect(row).to_contain_text(host)
    expect(row.get_by_role("link", name="a-job")).to_be_visible()
    expect(row.locator(".number").first).to_have_text("1")
    expect(page.locator("main")).to_contain_text("1 host, 1 agent connected, 1 job stands still")
    row.get_by_role("link", name=host).click()
    expect(page.locator("h1")).to_have_text(f"Host {host}")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_silent_hosts_are_named_with_their_ranks(open_page, daemon, big_job, theme):
    big_job(daemon, "--ranks=256")
    page = open_page(f"{daemon.page}/#/history", theme=theme)
    view = ask(daemon, "job", job="big")
    states = view["maps"][0]["states"]
    view["maps"][0]["states"] = states[:64] + "s" * 8 + states[72:]
    page.route(re.compile(r"/api/v1/job\?"), lambda route: route.fulfill(json=view))
    page.goto(f"{daemon.page}/#/hosts")
    expect(page.locator(".silent")).to_have_text("1 host silent in big: node-8 (ranks 64-71)")
    found = Axe().run(page, options={"runOnly": ["wcag2a", "wcag2aa", "wcag21aa"]})
    assert found.violations_count == 0, found.generate_report()


def test_agents_of_another_release_are_named_with_their_hosts(open_page, daemon, start_job):
    start_job(daemon)
    page = open_page(f"{daemon.page}/#/history")
    jobs = ask(daemon, "jobs")
    [own] = jobs["agent_releases"]
    assert own == {"release": jobs["rollcall_version"], "agents": 1, "hosts": jobs["jobs"][0]["hosts"]}
    jobs["agent_releases"] = [own, {"release": "0.9.0", "agents": 3, "hosts": ["node-1", "node-2"]}]
    jobs["agents"] = 6
    page.route(re.compile(r"/api/v1/jobs\?"), lambda route: route.fulfill(json=jobs))
    page.goto(f"{daemon.page}/#/hosts")
    expect(page.locator(".releases li")).to_have_text(
        [f"3 agents run release 0.9.0, the daemon release {own['release']}: node-1, node-2 and others",
         "2 agents of other releases"])


# Kind, subject, value, text and pid, and the sentence.
FACTS = [
    ("link_down", "mlx5_2 port 1", 0, "", 0, "mlx5_2 port 1 went DOWN"),
    ("xid", "GPU 0000:1b:00.0", 79, "GPU has fallen off the bus", 0,
     "GPU 0000:1b:00.0 reported Xid 79 (GPU has fallen off the bus)"),
    ("nic_error", "", 0, "", 0, "a device reported an error"),
    ("oom_kill", "", 0, "", 4711, "the kernel killed pid 4711 for lack of memory"),
    ("of_a_newer_agent", "GPU 3", 4, "some text", 0, "GPU 3: some text"),
]


def test_what_a_host_showed_is_a_sentence(open_page, daemon, start_job):
    start_job(daemon)
    incident = ask(daemon, "incident", id="a-job-1")
    incident["host_facts"] = [{"host": "node-1", "probes": [], "error": "", "facts": [
        {"kind": kind, "subject": subject, "value": value, "text": text, "age_seconds": 0, "pid": pid}
        for kind, subject, value, text, pid, _ in FACTS]}]
    page = open_page(f"{daemon.page}/#/history")
    page.route(re.compile(r"/api/v1/incident\?"), lambda route: route.fulfill(json=incident))
    page.goto(f"{daemon.page}/#/incident/a-job-1")
    cells = page.get_by_role("region", name="facts about hosts").locator("td.wide")
    expect(cells).to_have_text([words for *_, words in FACTS])


def test_what_a_gpu_did_is_a_sentence(open_page, daemon, start_job):
    start_job(daemon)
    incident = ask(daemon, "incident", id="a-job-1")
    kernel = {"name": "ncclDevKernel_AllReduce", "grid": "(24,1,1)", "block": "(640,1,1)", "status": "Active",
              "threads": 15360, "places": [{"at": "prims_ll.h:245", "threads": 15000}], "places_left_out": 1}
    dump = {"rank": 3, "host": "node-1", "pid": 4121, "device": 3, "is_culprit": True, "kernels": [kernel],
            "kernels_left_out": 0, "note": ""}
    incident["gpu_dumps"] = [dump, {**dump, "rank": 0, "device": -1, "is_culprit": False, "kernels": [],
                                    "note": "no kernel is on its GPU"}]
    page = open_page(f"{daemon.page}/#/history")
    page.route(re.compile(r"/api/v1/incident\?"), lambda route: route.fulfill(json=incident))
    page.goto(f"{daemon.page}/#/incident/a-job-1")
    expect(page.locator("#gpus li")).to_have_text([
        "rank 3 (node-1, pid 4121), the culprit: GPU 3 is in kernel ncclDevKernel_AllReduce, grid (24,1,1), "
        "block (640,1,1): 15,000 of 15,360 threads at prims_ll.h:245, and 1 more place",
        "rank 0 (node-1, pid 4121), waiting: no kernel is on its GPU"])
