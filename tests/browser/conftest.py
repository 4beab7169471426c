# SPDX-License-Identifier: Apache-2.0
"""A real daemon, real jobs and a simulated large one, and Debian's chromium."""
import importlib.util
import json
import pathlib
import subprocess
import urllib.parse
import urllib.request

import pytest
from playwright.sync_api import expect, sync_playwright

# The fixtures of the end-to-end tests: services, daemons.
_path = pathlib.Path(__file__).parent.parent / "e2e" / "conftest.py"
_spec = importlib.util.spec_from_file_location("e2e_conftest", _path)
e2e = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(e2e)
start_daemon, daemon, start_job = e2e.start_daemon, e2e.daemon, e2e.start_job
BUILD, VICTIMS = e2e.BUILD, e2e.VICTIMS

# A loaded machine takes its time; what is expected comes at once elsewhere.
expect.set_options(timeout=60_000)

CHROMIUM = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-background-networking",
            "--disable-component-update", "--disable-sync", "--no-first-run"]


@pytest.fixture(scope="session")
def browser():
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=CHROMIUM)
        yield chromium
        chromium.close()


class Problems(list):
    """Faults of the page: errors, dialogs, requests to other hosts."""


@pytest.fixture
def open_page(browser):
    """open_page(url, theme="light", width=1200, **options of the browser) -> page; nothing may have
    gone wrong in the end."""
    contexts, problems = [], Problems()

    def watch(page, host):
        page.on("pageerror", lambda error: problems.append(f"error: {error}"))
        page.on("dialog", lambda dialog: (problems.append("a dialog"), dialog.dismiss()))
        page.on("console", lambda message: problems.append(f"console: {message.text}")
                if message.type == "error" and "Content Security" in message.text else None)
        page.on("request", lambda request: problems.append(f"asked {request.url}")
                if urllib.parse.urlsplit(request.url).netloc not in (host, "") else None)

    def start(url, theme="light", width=1200, height=900, **options):
        context = browser.new_context(color_scheme=theme,
                                      viewport={"width": width, "height": height}, **options)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(60_000)
        watch(page, urllib.parse.urlsplit(url).netloc)
        page.goto(url)
        return page

    yield start
    for context in contexts:
        context.close()
    assert problems == []


@pytest.fixture
def big_job():
    """big_job(daemon, *flags): the agents' side of a job of 16,384 ranks."""
    jobs = []

    def start(daemon, *flags):
        jobs.append(subprocess.Popen([VICTIMS / "big_job", f"--daemon={daemon.address}",
                                      "--seconds=300", *flags],
                                     stdout=subprocess.PIPE, text=True))
        assert jobs[-1].stdout.readline() == "sent\n"
        return jobs[-1]

    yield start
    for job in jobs:
        job.terminate()
        job.wait(timeout=120)


def ask(daemon, path, **parameters):
    """The same from the API."""
    query = urllib.parse.urlencode(parameters)
    with urllib.request.urlopen(f"{daemon.page}/api/v1/{path}?{query}", timeout=120) as answer:
        return json.load(answer)


def pytest_collection_modifyitems(items):
    if not (BUILD / "daemon" / "page" / "page_files.cc").exists():
        raise pytest.UsageError("this build has no page: npm was not there")
    for item in items:
        if item.path.name != "test_smoke.py":
            item.add_marker(pytest.mark.long)
