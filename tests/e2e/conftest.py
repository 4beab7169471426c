# SPDX-License-Identifier: Apache-2.0
"""Runs jobs of real processes under `rollcall run`, and reads its output."""
import functools
import json
import os
import pathlib
import re
import signal
import subprocess
import time
import urllib.request

import pytest

BUILD = pathlib.Path(os.environ["ROLLCALL_BUILD"])
ROLLCALL = BUILD / "bin" / "rollcall"
VICTIMS = BUILD / "tests"
AS_NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]


@functools.lru_cache
def can_be_others():
    """Whether this user can become another one. Root of a user namespace may be its only user."""
    return (os.geteuid() == 0
            and subprocess.run([*AS_NOBODY, "true"], capture_output=True, check=False).returncode == 0)


class Result:
    """A job that has ended, and its report if there is one."""

    def __init__(self, process, out, err, reports, seconds):
        self.exit_code = process.returncode
        self.out = out
        self.err = err
        self.seconds = seconds
        self.reports = sorted(reports.iterdir()) if reports.exists() else []

    @property
    def incident(self):
        assert len(self.reports) == 1, f"{self.reports}\n{self.err}"
        return json.loads((self.reports[0] / "incident.json").read_text())

    @property
    def verdict(self):
        return self.incident["verdicts"][0]


def read_until(process, words):
    said = ""
    for line in process.stderr:
        said += line
        if words in line:
            return said
    raise AssertionError(f"{words} was never said\n{said}")


def wait_for(condition, seconds=30):
    """Waits until the condition returns a true value, and returns this value."""
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, f"the condition was not met within {seconds} s"
        time.sleep(0.05)
    return found


def ask(daemon, path):
    """The JSON answer of a daemon to a request of its HTTP API."""
    with urllib.request.urlopen(f"{daemon.page}/api/v1/{path}", timeout=10) as answer:
        return json.load(answer)


def find_communicator(daemon, ranks=4):
    """The communicator that all ranks of the daemon's only job have joined. None: not yet."""
    for job in ask(daemon, "status")["jobs"]:
        for communicator in job["communicators"]:
            if communicator["members"] == ranks:
                return communicator
    return None


def reports_in(folder):
    """The complete reports: a report has another name while the daemon writes it."""
    return [path for path in folder.glob("*") if not path.name.startswith(".")]


@pytest.fixture
def reports(tmp_path):
    return tmp_path / "reports"


@pytest.fixture
def run(reports):
    """run(victim, ranks=4, hang_after="3s", flags=[...], env={...}) -> Result

    until: ends the job once stderr holds this, for verdicts that --on-hang=abort does not act on.
    """

    def run_job(victim, ranks=4, hang_after="3s", on_hang="abort", flags=(), env=None, timeout=90,
                until=None):
        command = [
            ROLLCALL, "run", "--sim", f"--hang-after={hang_after}", f"--on-hang={on_hang}",
            f"--report-dir={reports}", *flags, "--", VICTIMS / "ranks", "-n", str(ranks),
            "--keep-going", "--", VICTIMS / victim,
        ]
        begun = time.monotonic()
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   stdin=subprocess.DEVNULL, text=True,
                                   env={**os.environ, **(env or {})})
        begin = read_until(process, until) if until else ""
        if until:
            process.terminate()
        try:
            out, err = process.communicate(timeout=timeout)
            err = begin + err
        except subprocess.TimeoutExpired:
            process.terminate()
            out, err = process.communicate(timeout=30)
            pytest.fail(f"the job did not end within {timeout} s\n{out}\n{err}")
        return Result(process, out, err, reports, time.monotonic() - begun)

    return run_job


class Service:
    """A rollcalld or rollcall-agent, ended by its pid."""

    def __init__(self, arguments, env=None):
        self.said = ""  # what read_until() has read
        self.process = subprocess.Popen(arguments, stderr=subprocess.PIPE, text=True,
                                        env={**os.environ, **(env or {})})

    def read_until(self, pattern):
        for line in self.process.stderr:
            self.said += line
            found = re.search(pattern, line)
            if found:
                return found
        raise AssertionError(f"{pattern} was never said")

    def kill(self, how=signal.SIGTERM):
        self.process.send_signal(how)
        self.process.wait(timeout=20)

    def end(self):
        """Ends it, and returns all that it has said."""
        self.kill()
        return self.said + self.process.stderr.read()


@pytest.fixture
def start_daemon(tmp_path):
    """start_daemon(*flags) -> Service, with its `address` and that of its `page`"""
    services = []

    def start(*flags):
        usual = ["--listen=127.0.0.1:0", "--http=127.0.0.1:0", "--hang-after=3s",
                 f"--report-dir={tmp_path / 'daemon-reports'}"]
        given = {flag.partition("=")[0] for flag in flags}
        service = Service([BUILD / "bin" / "rollcalld", *flags,
                           *(flag for flag in usual if flag.partition("=")[0] not in given)])
        services.append(service)
        said = service.read_until(
            r"agents on (127\.0\.0\.1:\d+), pages on (http://127\.0\.0\.1:\d+)/")
        service.address, service.page = said.groups()
        return service

    yield start
    for service in services:
        if service.process.poll() is None:
            service.kill()


@pytest.fixture
def daemon(start_daemon):
    return start_daemon()


@pytest.fixture
def start_job(tmp_path):
    """start_job(daemon, victim, name=...): a job that lives until the test ends."""
    jobs = []

    def start(daemon, victim="one_rank_stops_calling", name="a-job", ranks=4, said="rank 3"):
        job = Service([ROLLCALL, "run", "--sim", f"--daemon={daemon.address}", "--hang-after=3s",
                       f"--report-dir={tmp_path / 'here'}", "--", VICTIMS / "ranks", "-n",
                       str(ranks), "--keep-going", "--", VICTIMS / victim],
                      env={"ROLLCALL_JOB": name})
        jobs.append(job)
        if said:
            job.read_until(said)
        return job

    yield start
    for job in jobs:
        if job.process.poll() is None:
            job.kill()
