# SPDX-License-Identifier: Apache-2.0
"""deploy/try_fleet.sh: what deploy/try.sh --fleet shows once all is built."""
import os
import pathlib
import re
import shutil
import signal
import subprocess

import pytest

from conftest import BUILD, wait_for
from postgres_server import PROGRAMS

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "deploy" / "try_fleet.sh"
AGENTS = int(os.environ.get("ROLLCALL_TRY_FLEET_AGENTS", "3"))  # as many are the script's default: 10

pytestmark = pytest.mark.skipif(PROGRAMS is None,
                                reason="no PostgreSQL server is installed:  apt-get install postgresql")


def folders():
    return {*pathlib.Path("/tmp").glob("rollcall-fleet-*"), *(ROOT / "build").glob("try-fleet-*")}


def programs_with(word):
    """The pids of processes that have this word in their command line."""
    found = []
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if word in (entry / "cmdline").read_bytes().decode(errors="replace"):
                found.append(entry.name)
        except OSError:
            continue  # it has ended
    return found


@pytest.fixture
def logs():
    """The folder of logs of the script that the test runs, which the test deletes."""
    before, mine = folders(), []

    def find():
        mine.extend(path for path in folders() - before if path not in mine)
        return next((path for path in mine if path.parent.name == "build"), None)

    yield find
    find()
    for folder in mine:
        shutil.rmtree(folder, ignore_errors=True)


def command(*flags):
    return ["bash", SCRIPT, f"--build={BUILD}", f"--agents={AGENTS}", *flags]


@pytest.mark.parametrize("flags", [[], ["--without-namespaces"]], ids=["hosts", "folders"])
def test_the_incident_outlives_its_daemon_and_nothing_stays_behind(flags, logs):
    done = subprocess.run(command(*flags), stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=600, check=False)
    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    killed = re.search(r"killing (daemon-\d) \(kill -9", said)[1]
    heir = re.search(r"(daemon-\d) has taken the job (\d+\.\d) s after the kill", said)[1]
    assert heir != killed
    assert re.search(rf"the incident lives on: train-1, now of {heir}, with one alert", said)
    assert f"rank {AGENTS - 1} " in said
    folder = re.search(r"logs and reports: +(/\S+)", said)[1]
    assert folder == str(logs())
    assert programs_with(folder) == []


def test_a_signal_ends_all_that_it_has_started(logs):
    # Jobs that a shell starts in the background ignore SIGINT; Python's children do not.
    script = subprocess.Popen(command(), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL, start_new_session=True)
    try:
        folder = wait_for(logs)
        wait_for(lambda: (folder / "rank-0.log").exists(), 120)
        assert programs_with(str(folder))
        os.killpg(script.pid, signal.SIGINT)  # as Ctrl-C
        assert script.wait(timeout=60) == 130
        assert programs_with(str(folder)) == []
        assert not [path for path in folders() if path.parent.name == "tmp"]
    finally:
        if script.poll() is None:
            script.terminate()
            script.wait(timeout=60)


@pytest.mark.parametrize("flag, why", [
    ("--agents=many", "--agents takes a number from 2 to 200, not 'many'"),
    ("--fleet", "unknown argument --fleet"),
])
def test_wrong_flags_are_errors(flag, why):
    done = subprocess.run(["bash", SCRIPT, flag], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert why in done.stderr
