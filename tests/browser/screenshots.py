#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the pictures of docs/images: every view, in both themes.

    build/browser-venv/bin/python tests/browser/screenshots.py [BUILD_DIR]
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import threading

from playwright.sync_api import sync_playwright

ROOT = pathlib.Path(__file__).parent.parent.parent
BUILD = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build" / "release").resolve()
IMAGES = ROOT / "docs" / "images"
CHROMIUM = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-background-networking",
            "--disable-component-update", "--disable-sync"]


def read_until(stream, pattern):
    for line in stream:
        found = re.search(pattern, line)
        if found:
            threading.Thread(target=stream.read, daemon=True).start()
            return found
    raise SystemExit(f"the daemon never printed {pattern}")


def main():
    IMAGES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        daemon = subprocess.Popen(
            [BUILD / "bin" / "rollcalld", "--listen=127.0.0.1:0", "--http=127.0.0.1:0",
             f"--report-dir={folder}/reports", "--hang-after=3s"],
            stderr=subprocess.PIPE, text=True)
        address, url = read_until(daemon.stderr, r"agents on (\S+), pages on (\S+)/").groups()
        big = subprocess.Popen([BUILD / "tests" / "big_job", f"--daemon={address}", "--job=llm-70b",
                                "--hang-after=8"], stdout=subprocess.DEVNULL)
        jobs = []
        for name, victim, said in [("resnet", "one_rank_stops_calling", "rank 3"),
                                   ("gpt-small", "one_rank_broadcasts", "Broadcast")]:
            job = subprocess.Popen(
                [BUILD / "bin" / "rollcall", "run", "--sim", f"--daemon={address}",
                 "--hang-after=3s", f"--report-dir={folder}/here", "--", BUILD / "tests" / "ranks",
                 "-n", "4", "--keep-going", "--", BUILD / "tests" / victim],
                stderr=subprocess.PIPE, text=True, env={**os.environ, "ROLLCALL_JOB": name})
            jobs.append(job)
            read_until(job.stderr, said)
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=CHROMIUM)
        views = [("jobs", "", 900, 330), ("job-16384", "#/job/llm-70b", 900, 760),
                 ("job", "#/job/resnet", 900, 900), ("incident", "#/incident/resnet-1", 900, 1000),
                 ("mismatch", "#/incident/gpt-small-1", 900, 900),
                 ("history", "#/history", 900, 560),
                 ("rank", "#/job/resnet/rank/3", 900, 900),
                 ("compare", "#/compare/resnet-1/gpt-small-1", 900, 1100)]
        for theme in ("light", "dark"):
            context = browser.new_context(color_scheme=theme)
            page = context.new_page()
            page.goto(f"{url}/#/job/llm-70b")
            page.wait_for_selector(".sentence-hung", timeout=60_000)
            for name, view, width, height in views:
                page.set_viewport_size({"width": width, "height": height})
                page.goto(f"{url}/{view}")
                page.wait_for_selector("h1")
                page.wait_for_timeout(1500)
                page.screenshot(path=IMAGES / f"{name}{'' if theme == 'light' else '-dark'}.png")
            context.close()
        browser.close()
        for process in [*jobs, big, daemon]:
            process.terminate()
            process.wait()


main()
