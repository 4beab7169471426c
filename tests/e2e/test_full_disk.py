# SPDX-License-Identifier: Apache-2.0
"""Hangs that are found while the disk of reports and history is full, or cannot be written."""
import json
import pathlib
import subprocess
import time
import urllib.request

import pytest

from conftest import ROLLCALL, VICTIMS, Service


class Disk:
    """A small file system that only `command` and what it starts can see."""

    def __init__(self, folder):
        self.folder = folder
        self.inside = None  # the same folder, as this process reaches it
        folder.mkdir()

    def command(self, *arguments):
        mount = f'mount --make-rprivate / && mount -t tmpfs -o size=1m small "{self.folder}"'
        return ["unshare", "--mount", "sh", "-c", f'{mount} && exec "$@"', "sh", *arguments]

    def enter(self, process):
        self.inside = pathlib.Path(f"/proc/{process.pid}/root{self.folder}")

    def fill(self):
        with open(self.inside / "filler", "wb", buffering=0) as filler:
            try:
                while filler.write(bytes(4096)) == 4096:
                    pass
            except OSError:
                return  # it is full

    def free(self):
        (self.inside / "filler").unlink()


@pytest.fixture
def disk(tmp_path):
    disk = Disk(tmp_path / "disk")
    tried = subprocess.run(disk.command("true"), capture_output=True, text=True)
    if tried.returncode != 0:
        pytest.skip(f"a file system cannot be mounted here: {tried.stderr}")
    return disk


def wait_for(what, seconds=30):
    """What `what` returns, as soon as that is something."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        found = what()
        if found:
            return found
        time.sleep(0.1)
    return what()


def incidents(daemon):
    answer = urllib.request.urlopen(f"{daemon.page}/api/v1/incidents", timeout=5)
    return json.load(answer)["incidents"]


def confirmed(daemon):
    return [incident for incident in incidents(daemon) if incident["state"] == "confirmed"]


def reports_in(folder):
    return [path for path in folder.glob("*") if not path.name.startswith(".")]


@pytest.fixture
def daemon_on(disk):
    """A rollcalld whose reports and history lie on the small disk."""
    service = Service(disk.command(
        ROLLCALL.parent / "rollcalld", "--listen=127.0.0.1:0", "--http=127.0.0.1:0",
        "--hang-after=3s", f"--report-dir={disk.folder}/reports"))
    found = service.read_until(r"agents on (127\.0\.0\.1:\d+), pages on (http://127\.0\.0\.1:\d+)/")
    service.address, service.page = found.groups()
    disk.enter(service.process)
    yield service
    if service.process.poll() is None:
        service.kill()


def test_a_hang_is_listed_while_the_disk_is_full_and_written_when_it_is_not(
        disk, daemon_on, start_job):
    disk.fill()
    start_job(daemon_on, name="on-a-full-disk")
    found = wait_for(lambda: confirmed(daemon_on))
    assert found and found[0]["job"] == "on-a-full-disk"
    listed = subprocess.run([ROLLCALL, "incidents", f"--daemon={daemon_on.address}"],
                            capture_output=True, text=True, timeout=20)
    assert "on-a-full-disk-1" in listed.stdout and "missing_rank" in listed.stdout
    assert not reports_in(disk.inside / "reports")
    time.sleep(6)  # later than what is worth a word
    disk.free()
    reports = wait_for(lambda: reports_in(disk.inside / "reports"), 70)
    assert len(reports) == 1
    text = (reports[0] / "report.txt").read_text()
    assert "after the hang was confirmed" in text and "No space left on device" in text
    # The history has it too, with the path.
    assert wait_for(lambda: confirmed(daemon_on)[0]["report_path"] == f"{disk.folder}/reports/"
                    f"{reports[0].name}")
    assert confirmed(daemon_on)[0]["report_note"]
    assert sorted(path.stat().st_mode & 0o027 for path in reports[0].iterdir()) == [0] * 4


def test_a_daemon_that_stops_on_a_full_disk_says_what_is_lost(disk, daemon_on, start_job):
    disk.fill()
    start_job(daemon_on)
    assert wait_for(lambda: confirmed(daemon_on))
    begun = time.monotonic()
    daemon_on.kill()
    assert time.monotonic() - begun < 15
    said = daemon_on.process.stderr.read()
    assert "the report was not written" in said and "No space left on device" in said


def test_rollcall_run_tells_of_a_hang_whose_report_cannot_be_written(disk):
    # From outside the disk cannot be filled before there is something on it.
    script = ('"$0" run --sim --hang-after=3s --on-hang=abort --report-dir="$1/reports" -- '
              'sh -c "cat /dev/zero > $1/filler 2> $1/../said; shift; exec \\"\\$@\\"" sh "$@"')
    done = subprocess.run(
        disk.command("sh", "-c", script, ROLLCALL, disk.folder, VICTIMS / "ranks", "-n", "4",
                     "--keep-going", "--", VICTIMS / "one_rank_stops_calling"),
        capture_output=True, text=True, timeout=90, stdin=subprocess.DEVNULL)
    assert done.returncode == 75, done.stderr
    assert "rank 3" in done.stderr
    assert "not written yet: cannot" in done.stderr and "No space left on device" in done.stderr
