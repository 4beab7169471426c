# SPDX-License-Identifier: Apache-2.0
"""deploy/try_fleet.sh: what deploy/try.sh --fleet shows once all is built."""
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile

import pytest
from conftest import BUILD, wait_for
from postgres_server import PROGRAMS

ROOT = pathlib.Path(__file__).resolve().parents[3]
SCRIPT = ROOT / "deploy" / "try_fleet.sh"
AGENTS = int(os.environ.get("ROLLCALL_TRY_FLEET_AGENTS", "3"))  # as many are the script's default: 10

pytestmark = pytest.mark.skipif(PROGRAMS is None,
                                reason="no PostgreSQL server is installed:  apt-get install postgresql")


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


class Try:
    """The script, with a folder of its own for temporary files."""

    def __init__(self, *flags):
        # Short, as it is to hold sockets, and open to the user of the database.
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="try-", dir="/tmp"))
        self.folder.chmod(0o755)
        self.process = subprocess.Popen(
            ["bash", SCRIPT, f"--build={BUILD}", f"--agents={AGENTS}", *flags], text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            env={**os.environ, "TMPDIR": str(self.folder)}, start_new_session=True)
        self.said, self.logs = "", None
        for line in self.process.stdout:
            self.said += line
            if found := re.search(r"logs and reports: +(/\S+)", line):
                self.logs = pathlib.Path(found[1])
                return

    def finish(self):
        """Its exit code."""
        self.said += self.process.communicate(timeout=600)[0]
        return self.process.returncode

    def end(self):
        if self.process.poll() is None:
            self.process.terminate()
            self.process.communicate(timeout=120)
        shutil.rmtree(self.folder)
        if self.logs:
            shutil.rmtree(self.logs)


@pytest.fixture
def start():
    tries = []

    def start_one(*flags):
        tries.append(Try(*flags))
        assert tries[-1].logs, tries[-1].said
        return tries[-1]

    yield start_one
    for one in tries:
        one.end()


@pytest.mark.long
@pytest.mark.parametrize("flags", [[], ["--without-namespaces"]], ids=["hosts", "folders"])
def test_the_incident_outlives_its_daemon_and_nothing_stays_behind(flags, start):
    script = start(*flags)
    assert script.finish() == 0, script.said
    killed = re.search(r"killing (daemon-\d) \(kill -9", script.said)[1]
    heir = re.search(r"(daemon-\d) has taken the job (\d+\.\d) s after the kill", script.said)[1]
    assert heir != killed
    assert f"the incident lives on: train-1, now of {heir}, with one alert" in script.said
    assert f"rank {AGENTS - 1} " in script.said
    assert programs_with(str(script.logs)) == programs_with(str(script.folder)) == []
    assert list(script.folder.iterdir()) == []


@pytest.mark.long
def test_a_signal_ends_all_that_it_has_started(start):
    script = start()
    wait_for(lambda: (script.logs / "rank-0.log").exists(), 120)
    assert programs_with(str(script.logs)) and programs_with(str(script.folder))
    os.killpg(script.process.pid, signal.SIGINT)  # as Ctrl-C
    assert script.finish() == 130
    assert programs_with(str(script.logs)) == programs_with(str(script.folder)) == []
    assert list(script.folder.iterdir()) == []


@pytest.mark.parametrize("flag, why", [
    ("--agents=many", "--agents takes a number from 2 to 200, not 'many'"),
    ("--fleet", "unknown argument --fleet"),
])
def test_wrong_flags_are_errors(flag, why):
    done = subprocess.run(["bash", SCRIPT, flag], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 1
    assert why in done.stderr
