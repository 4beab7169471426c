# SPDX-License-Identifier: Apache-2.0
"""The site, built from the docs as they are, and a browser that records what it asks for."""
import pathlib
import subprocess

import pytest
from playwright.sync_api import expect, sync_playwright

ROOT = pathlib.Path(__file__).resolve().parents[2]
# A loaded machine takes its time; what is expected comes at once elsewhere.
expect.set_options(timeout=60_000)


@pytest.fixture(scope="session")
def site(tmp_path_factory):
    """The folder of the site. The script fails on a link or an anchor that leads nowhere."""
    folder = tmp_path_factory.mktemp("site") / "site"
    built = subprocess.run([ROOT / "docs" / "build_site.sh", folder], capture_output=True,
                           text=True, timeout=300, check=False)
    assert built.returncode == 0, built.stdout + built.stderr
    return folder


@pytest.fixture(scope="session")
def browser():
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(
            executable_path="/usr/bin/chromium",
            args=["--no-sandbox", "--disable-gpu", "--disable-background-networking",
                  "--disable-component-update", "--disable-sync", "--no-first-run"])
        yield chromium
        chromium.close()


@pytest.fixture
def open_page(browser, site):
    """open_page(name, theme="light") -> page of file://. Fails on an error of a script, on a file
    that is not there, and on any request that is not for a file of the site."""
    contexts, problems = [], []

    def watch(request):
        if not request.url.startswith((site.as_uri(), "data:", "blob:", "about:")):
            problems.append(f"asked {request.url}")

    def failed(request):
        if request.failure != "net::ERR_ABORTED":  # the page was left while it loaded
            problems.append(f"did not get {request.url}: {request.failure}")

    def start(name, theme="light"):
        context = browser.new_context(color_scheme=theme)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(120_000)
        page.on("request", watch)
        page.on("requestfailed", failed)
        page.on("pageerror", lambda error: problems.append(f"error: {error}"))
        page.goto((site / name).as_uri())
        return page

    yield start
    for context in contexts:
        context.close()
    assert problems == []
