#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The page with a job of 16,384 ranks: first view, a change on the screen, memory, fifty viewers.
And the list of 1,000 jobs: first view, a search, a hang on the screen.

    build/browser-venv/bin/python tests/bench/page.py [BUILD_DIR] [--hours=1] [--viewers=50]

Needs what `deploy/setup_parts.sh browser` installs. Prints medians; each figure beside what was aimed at.
"""
import argparse
import json
import pathlib
import re
import statistics
import subprocess
import threading
import time
import urllib.request

from playwright.sync_api import sync_playwright

CHROMIUM = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-background-networking",
            "--disable-component-update", "--disable-sync"]


def start_daemon(build, folder):
    process = subprocess.Popen(
        [build / "bin" / "rollcalld", "--listen=127.0.0.1:0", "--http=127.0.0.1:0",
         f"--report-dir={folder}/reports", "--hang-after=5s"], stderr=subprocess.PIPE, text=True)
    for line in process.stderr:
        found = re.search(r"agents on (\S+), pages on (\S+)/", line)
        if found:
            threading.Thread(target=process.stderr.read, daemon=True).start()
            return process, found.group(1), found.group(2)
    raise SystemExit("the daemon did not start")


def start_job(build, address, *flags):
    job = subprocess.Popen([build / "tests" / "big_job", f"--daemon={address}", "--seconds=3600",
                            *flags], stdout=subprocess.PIPE, text=True)
    job.stdout.readline()
    return job


def cpu_seconds(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100


def first_views(browser, url, rounds, shown=".map canvas[style]"):
    times = []
    for _ in range(rounds):
        context = browser.new_context(viewport={"width": 1200, "height": 900})
        page = context.new_page()
        begun = time.monotonic()
        page.goto(url)
        page.wait_for_selector(shown)
        times.append(time.monotonic() - begun)
        context.close()
    return times


def jobs_in(url, hung):
    """How many jobs the daemon has; with `hung`, how many of them hang."""
    with urllib.request.urlopen(f"{url}/api/v1/jobs?limit=1000", timeout=30) as answer:
        jobs = json.load(answer)["jobs"]
    return sum(not hung or job["state"] == "hung" for job in jobs)


def wait_until(condition, seconds):
    until = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > until:
            raise SystemExit("the load did not come about")
        time.sleep(0.1)


def list_of_jobs(browser, build, folder):
    """First views, the time of a search, and that from the daemon's word to a hang on the screen."""
    daemon, address, url = start_daemon(build, folder)
    load = subprocess.Popen(
        [build / "tests" / "fleet_load", f"--daemon={address}", "--jobs=1000", "--ranks=8",
         "--seconds=600", "--start-within=10", "--hang-at=45"], stdout=subprocess.DEVNULL)
    try:
        wait_until(lambda: jobs_in(url, hung=False) == 1000, 60)
        shown = "tbody tr:nth-child(100)"
        views = first_views(browser, f"{url}/#/", 7, shown)
        context = browser.new_context(viewport={"width": 1200, "height": 900})
        page = context.new_page()
        page.goto(f"{url}/#/")
        page.wait_for_selector(shown)
        begun = time.monotonic()
        page.get_by_role("searchbox").fill("job-77")
        page.wait_for_function("document.querySelectorAll('tbody tr').length < 100")
        search = time.monotonic() - begun
        page.get_by_role("searchbox").fill("")
        wait_until(lambda: jobs_in(url, hung=True) > 0, 120)
        begun = time.monotonic()
        page.wait_for_selector("tbody tr:first-child >> text=hung", timeout=30_000)
        hang = time.monotonic() - begun
        context.close()
        return views, search, hang
    finally:
        for process in (load, daemon):
            process.terminate()
            process.wait()


def change_on_screen(browser, build, address, page_url):
    """The time from the tick that stops the job until the page shows a waiting rank."""
    job = start_job(build, address, "--job=change", "--hang-after=6", "--tick=0.5")
    begun = time.monotonic()
    context = browser.new_context(viewport={"width": 1200, "height": 900})
    page = context.new_page()
    page.goto(f"{page_url}/#/job/change")
    page.wait_for_selector(".map canvas[style]")
    page.wait_for_selector(".words >> text=waiting for others", timeout=60_000)
    took = time.monotonic() - begun - 6
    context.close()
    job.terminate()
    job.wait()
    return took


def memory(browser, url, hours):
    """Samples of the script's memory over hours of the page's own clock, which runs fast."""
    context = browser.new_context(viewport={"width": 1200, "height": 900})
    page = context.new_page()
    inspector = context.new_cdp_session(page)
    page.clock.install()
    page.goto(url)
    page.clock.run_for(1000)
    page.wait_for_selector(".map canvas[style]")
    samples = []
    begun = time.monotonic()
    for second in range(int(hours * 3600)):
        page.clock.run_for(1000)
        if second % 180 == 179:
            inspector.send("HeapProfiler.collectGarbage")
            samples.append(inspector.send("Runtime.getHeapUsage")["usedSize"] / 1e6)
    nodes = page.evaluate("() => document.querySelectorAll('*').length")
    context.close()
    return samples, nodes, time.monotonic() - begun


class Viewer(threading.Thread):
    """Acts like the page: receives changes, asks at most twice a second."""

    def __init__(self, url, job, seconds):
        super().__init__(daemon=True)
        self.url, self.job, self.until, self.answers = url, job, time.monotonic() + seconds, 0

    def run(self):
        events = urllib.request.urlopen(f"{self.url}/api/v1/events", timeout=30)
        last = 0
        while time.monotonic() < self.until:
            line = events.readline()
            if line.startswith(b"event: change") and time.monotonic() - last > 0.5:
                last = time.monotonic()
                request = urllib.request.Request(f"{self.url}/api/v1/job?job={self.job}",
                                                 headers={"Accept-Encoding": "gzip"})
                urllib.request.urlopen(request, timeout=30).read()
                self.answers += 1


def viewers_cost(pid, url, count, seconds):
    before = cpu_seconds(pid)
    time.sleep(seconds)
    alone = (cpu_seconds(pid) - before) / seconds
    viewers = [Viewer(url, "moving", seconds + 2) for _ in range(count)]
    for viewer in viewers:
        viewer.start()
    time.sleep(2)
    before = cpu_seconds(pid)
    time.sleep(seconds)
    watched = (cpu_seconds(pid) - before) / seconds
    for viewer in viewers:
        viewer.join()
    return alone, watched, sum(viewer.answers for viewer in viewers) / (seconds + 2)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build", nargs="?", default="build/release", type=pathlib.Path)
    parser.add_argument("--hours", type=float, default=1, help="of the page's clock")
    parser.add_argument("--viewers", type=int, default=50)
    options = parser.parse_args()
    if options.hours < 0.05:
        parser.error("--hours must be 0.05 at least: the first sample is taken after three minutes")
    build = options.build.resolve()
    folder = subprocess.run(["mktemp", "-d"], capture_output=True, text=True).stdout.strip()
    daemon, address, url = start_daemon(build, folder)
    job = start_job(build, address, "--job=moving", "--hang-after=1000000", "--tick=1")
    time.sleep(6)
    try:
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=CHROMIUM)
            times = first_views(browser, f"{url}/#/job/moving", 7)
            print(f"first view of 16,384 ranks: {statistics.median(times):.2f} s (of {len(times)}, "
                  f"{min(times):.2f} to {max(times):.2f}; wanted: 1 s)", flush=True)
            changes = [change_on_screen(browser, build, address, url) for _ in range(3)]
            print(f"a change on the screen after the agent's tick: "
                  f"{statistics.median(changes):.2f} s"
                  f" ({', '.join(f'{c:.2f}' for c in changes)}; wanted: 1 s)", flush=True)
            fast = start_job(build, address, "--job=fast", "--ranks=4096", "--hang-after=1000000",
                             "--tick=0.2")
            time.sleep(2)
            samples, nodes, took = memory(browser, f"{url}/#/job/fast", options.hours)
            fast.terminate()
            fast.wait()
            print(f"memory of the page's script, {options.hours:g} h of live updates "
                  f"(in {took:.0f} s): "
                  f"{samples[0]:.1f} MB after 3 min, then {min(samples):.1f} to "
                  f"{max(samples):.1f}, {samples[-1]:.1f} at the end; {nodes} elements",
                  flush=True)
            views, search, hang = list_of_jobs(browser, build, folder)
            print(f"first view of 1,000 jobs: {statistics.median(views):.2f} s (of {len(views)}, "
                  f"{min(views):.2f} to {max(views):.2f}; wanted: 1 s); a search {search:.2f} s; a hang "
                  f"on the screen {hang:.2f} s after the daemon had it (wanted: 1 s)", flush=True)
            browser.close()
        alone, watched, rate = viewers_cost(daemon.pid, url, options.viewers, 20)
        print(f"the daemon: {100 * alone:.1f} % of a core without viewers, "
              f"{100 * watched:.1f} % with "
              f"{options.viewers} ({rate:.0f} answers a second; wanted: 10 % more)", flush=True)
    finally:
        for process in (job, daemon):
            process.terminate()
            process.wait()


main()
