# SPDX-License-Identifier: Apache-2.0
"""The release before beside this one: each may run with the other's library, agent and daemon, and an
upgrade or a downgrade happens under running jobs. A hang is named all the same, and no healthy job is.

    tests/run install tests/install/test_previous.py     builds the release before, once
"""
import functools
import itertools
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request

import processes
import pytest
from alert_receiver import Receiver

PACKAGES = pathlib.Path(os.environ["ROLLCALL_PACKAGES"])
SOURCE = pathlib.Path(__file__).resolve().parents[2]
PREVIOUS = SOURCE / "build" / "previous"
ARCHITECTURE = {"x86_64": "amd64", "aarch64": "arm64"}.get(os.uname().machine)
NOW, BEFORE = PACKAGES / "tree" / "usr", PREVIOUS / "tree" / "usr"
RELEASES = {"now": NOW, "before": BEFORE}
HANG_AFTER = 3
# How long a healthy job runs under a changed part without a verdict: several times --hang-after.
QUIET_SECONDS = 8
wait_for = functools.partial(processes.wait_for, seconds=40)
pytestmark = pytest.mark.long


@pytest.fixture(scope="module", autouse=True)
def previous():
    made = subprocess.run([SOURCE / "tests" / "install" / "build_previous.sh"], capture_output=True, text=True)
    assert made.returncode == 0, made.stderr


class Cluster:
    """A job, an agent and a daemon of chosen releases, which the test exchanges while the job runs."""

    def __init__(self, folder):
        self.folder = folder
        self.segments = folder / "segments"
        self.segments.mkdir(mode=0o700)
        self.running = {}
        self.address = self.page = None

    def start(self, what, command, env=None):
        with open(self.folder / f"{what}.log", "a") as log:
            self.running[what] = subprocess.Popen([str(word) for word in command], stdout=log, stderr=log,
                                                  stdin=subprocess.DEVNULL, start_new_session=True,
                                                  env={**os.environ, **(env or {})})

    def end(self, what, how=signal.SIGTERM):
        process = self.running.pop(what)
        if process.poll() is None:
            os.killpg(process.pid, how)
        process.wait(timeout=120)

    def log(self, what):
        return (self.folder / f"{what}.log").read_text()

    def start_daemon(self, usr, *flags):
        self.start("daemon", [
            usr / "bin" / "rollcalld", f"--listen={self.address or '127.0.0.1:0'}",
            f"--http={self.page or '127.0.0.1:0'}", f"--hang-after={HANG_AFTER}s",
            f"--report-dir={self.folder / 'reports'}", *flags])
        if self.page is None:
            said = r"agents on (127\.0\.0\.1:\d+), pages on http://(127\.0\.0\.1:\d+)/"
            self.address, self.page = wait_for(lambda: re.search(said, self.log("daemon"))).groups()

    def start_agent(self, usr):
        self.start("agent", [usr / "bin" / "rollcall-agent", f"--daemon={self.address}", "--scope=directory",
                             f"--dir={self.segments}"])

    def start_job(self, usr):
        library = usr / "lib" / "rollcall"
        self.start("job", [sys.executable, pathlib.Path(__file__).with_name("trains_until_told.py"),
                           library / "demo", self.folder],
                   env={"LD_PRELOAD": library / "librollcall.so", "LD_LIBRARY_PATH": library / "sim",
                        "ROLLCALL_DIR": str(self.segments), "ROLLCALL_JOB": "train"})
        wait_for(lambda: all((self.folder / f"step-{rank}").exists() for rank in range(4)))

    def ask(self, path):
        try:
            with urllib.request.urlopen(f"http://{self.page}/api/v1/{path}", timeout=120) as answer:
                return json.load(answer)
        except urllib.error.HTTPError:
            raise
        except OSError:  # the daemon is away
            return {}

    def progress(self):
        """The position of the job's communicator; None: the daemon does not know all ranks."""
        for job in self.ask("status").get("jobs", []):
            for communicator in job["communicators"]:
                if communicator["members"] == 4:
                    return communicator["position_max"]
        return None

    def progresses(self):
        """Whether the daemon sees the job go on from here."""
        first = wait_for(self.progress)
        return wait_for(lambda: (self.progress() or 0) > first + 5)

    def incidents(self):
        return self.ask("incidents")["incidents"]

    def stays_quiet(self):
        end = time.monotonic() + QUIET_SECONDS
        while time.monotonic() < end:
            assert self.incidents() == []
            time.sleep(0.5)
        self.progresses()

    def is_named(self):
        """Lets rank 3 hang, and waits for the verdict."""
        (self.folder / "hang").touch()

        def confirmed():
            return [one for one in self.ask("incidents").get("incidents", []) if one["state"] == "confirmed"]

        incident, = wait_for(confirmed)
        verdict = incident["verdicts"][0]
        assert (verdict["cause"], [culprit["rank"] for culprit in verdict["culprits"]]) == (
            "missing_rank", [3])
        assert sorted(verdict["waiting_ranks"]) == [0, 1, 2]

        # The agent took the stacks that the daemon asked for.
        wait_for(lambda: "validate" in json.dumps(self.ask(f"incident?id={incident['id']}").get("verdicts")))


@pytest.fixture
def cluster(tmp_path):
    whole = Cluster(tmp_path)
    yield whole
    for what in list(whole.running):
        whole.end(what, signal.SIGKILL)


MIXES = [mix for mix in itertools.product(RELEASES, repeat=3) if set(mix) == {"now", "before"}]


@pytest.mark.parametrize("library, agent, daemon", MIXES,
                         ids=[f"library_{a}-agent_{b}-daemon_{c}" for a, b, c in MIXES])
def test_a_hang_is_named_across_releases(cluster, library, agent, daemon):
    cluster.start_daemon(RELEASES[daemon])
    cluster.start_agent(RELEASES[agent])
    cluster.start_job(RELEASES[library])
    cluster.progresses()
    cluster.is_named()


@pytest.mark.parametrize("first, then", [("before", "now"), ("now", "before")], ids=["upgrade", "downgrade"])
def test_an_exchange_under_a_running_job_alarms_nobody_and_loses_nothing(cluster, first, then):
    cluster.start_daemon(RELEASES[first])
    cluster.start_agent(RELEASES[first])
    cluster.start_job(RELEASES[first])
    cluster.progresses()
    cluster.end("agent")
    cluster.start_agent(RELEASES[then])
    cluster.stays_quiet()
    cluster.end("daemon")
    cluster.start_daemon(RELEASES[then])
    cluster.progresses()
    cluster.stays_quiet()
    cluster.is_named()


@pytest.mark.parametrize("first, then", [("before", "now"), ("now", "before")], ids=["upgrade", "downgrade"])
def test_an_open_incident_continues_under_the_other_release(cluster, first, then):
    cluster.start_daemon(RELEASES[first])
    cluster.start_agent(RELEASES["before"])
    cluster.start_job(RELEASES["before"])
    cluster.progresses()
    cluster.is_named()
    known, = cluster.incidents()
    cluster.end("daemon")
    cluster.start_daemon(RELEASES[then])
    wait_for(cluster.progress)

    def confirmed():
        return [one["id"] for one in cluster.ask("incidents").get("incidents", [])
                if one["state"] == "confirmed"]

    assert wait_for(confirmed) == [known["id"]]


@pytest.fixture
def receivers():
    both = [Receiver(), Receiver()]
    yield both
    for receiver in both:
        receiver.close()


def test_after_a_downgrade_an_unsent_note_repeats_no_alert(cluster, receivers):
    """A daemon that does not know notes would send the unsent one as a hang."""
    chat, bus = receivers
    alerts = [f"--alert=json={chat.url()}", f"--alert=cloudevents={bus.url()}"]
    cluster.start_daemon(RELEASES["now"], *alerts)
    cluster.start_agent(RELEASES["before"])
    cluster.start_job(RELEASES["before"])
    cluster.progresses()
    cluster.is_named()
    wait_for(lambda: chat.taken and bus.taken)
    known, = cluster.incidents()

    bus.refuses = True
    subprocess.run([NOW / "bin" / "rollcall", "note", known["id"], "the switch is dead",
                    f"--daemon={cluster.address}"], check=True, timeout=120)
    wait_for(lambda: any("annotated" in body["type"] for _, _, body in bus.refused))
    cluster.end("daemon", signal.SIGKILL)
    bus.refuses = False
    sent = len(bus.taken)

    # The release before refuses to start with CloudEvents, which it does not know.
    cluster.start_daemon(RELEASES["before"], f"--alert=json={chat.url()}", f"--alert=json={bus.url()}")
    wait_for(cluster.progress)
    cluster.end("job", signal.SIGKILL)
    wait_for(lambda: len(bus.taken) > sent and len(chat.taken) > 1)
    assert [body["status"] for _, _, body in chat.taken].count("firing") == 1
    assert "firing" not in [body["status"] for _, _, body in bus.taken[sent:]]


def one(folder, pattern):
    found, = folder.glob(pattern)
    return found


@pytest.mark.parametrize("first, then", [("before", "now"), ("now", "before")], ids=["upgrade", "downgrade"])
def test_dpkg_exchanges_the_packages_under_a_running_job(cluster, first, then, tmp_path):
    if os.geteuid() != 0:
        pytest.skip("dpkg needs root")
    root = tmp_path / "root"
    (root / "var" / "lib" / "dpkg").mkdir(parents=True)
    for file in ("status", "available"):
        (root / "var" / "lib" / "dpkg" / file).touch()
    debs = {"now": PACKAGES, "before": PREVIOUS / "packages"}

    def install(release):
        files = [one(debs[release], f"{package}_*_{ARCHITECTURE}.deb")
                 for package in ("rollcall", "rollcall-agent", "rollcalld")]
        done = subprocess.run(["dpkg", f"--root={root}", "--force-script-chrootless", "--force-depends",
                               "--force-downgrade", "--log=/dev/null", "--install", *files],
                              capture_output=True, text=True)
        assert done.returncode == 0, done.stderr

    install(first)
    usr = root / "usr"
    old_library = (usr / "lib" / "rollcall" / "librollcall.so").read_bytes()
    cluster.start_daemon(usr)
    cluster.start_agent(usr)
    cluster.start_job(usr)
    cluster.progresses()
    install(then)  # as it does while all three run
    assert (usr / "lib" / "rollcall" / "librollcall.so").read_bytes() != old_library
    cluster.stays_quiet()
    for what, start in (("agent", cluster.start_agent), ("daemon", cluster.start_daemon)):
        cluster.end(what)  # as the package's script does for systemd
        start(usr)
    cluster.progresses()
    cluster.stays_quiet()
    cluster.is_named()
    assert cluster.running["job"].poll() is None
