# SPDX-License-Identifier: Apache-2.0
"""Hangs while the disk for reports and history is full or read-only."""
import pathlib
import subprocess
import time

import pytest
from conftest import PATIENCE, ROLLCALL, VICTIMS, Service, ask, reports_in, wait_for


class Disk:
    """A small file system that only `command` and its children can see."""

    def __init__(self, folder):
        self.folder = folder
        self.inside = None  # the same folder, by the path of this process
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
                return  # the disk is full

    def free(self):
        (self.inside / "filler").unlink()


@pytest.fixture
def disk(tmp_path):
    disk = Disk(tmp_path / "disk")
    tried = subprocess.run(disk.command("true"), capture_output=True, text=True)
    if tried.returncode != 0:
        pytest.skip(f"a file system cannot be mounted here: {tried.stderr}")
    return disk


def confirmed(daemon):
    incidents = ask(daemon, "incidents")["incidents"]
    return [incident for incident in incidents if incident["state"] == "confirmed"]


@pytest.fixture
def daemon_on(disk):
    """A rollcalld with its reports and history on the small disk."""
    service = Service(disk.command(
        ROLLCALL.parent / "rollcalld", "--listen=127.0.0.1:0", "--http=127.0.0.1:0",
        "--hang-after=3s", f"--report-dir={disk.folder}/reports"))
    found = service.read_until(r"agents on (127\.0\.0\.1:\d+), pages on (http://127\.0\.0\.1:\d+)/")
    service.address, service.page = found.groups()
    disk.enter(service.process)
    yield service
    if service.process.poll() is None:
        service.kill()


@pytest.mark.long
def test_the_daemon_lists_a_hang_on_a_full_disk_and_writes_it_later(
        disk, daemon_on, start_job):
    disk.fill()
    start_job(daemon_on, name="on-a-full-disk")
    found = wait_for(lambda: confirmed(daemon_on))
    assert found[0]["job"] == "on-a-full-disk"
    listed = subprocess.run([ROLLCALL, "incidents", f"--daemon={daemon_on.address}"],
                            capture_output=True, text=True, timeout=120)
    assert "on-a-full-disk-1" in listed.stdout and "missing_rank" in listed.stdout
    assert not reports_in(disk.inside / "reports")
    time.sleep(6)  # longer than the delay that a report does not mention
    disk.free()
    reports = wait_for(lambda: reports_in(disk.inside / "reports"))
    assert len(reports) == 1
    text = (reports[0] / "report.txt").read_text()
    assert "after the hang was confirmed" in text and "No space left on device" in text
    # The history has the incident too, with the path of the report.
    wait_for(lambda: confirmed(daemon_on)[0]["report_path"] == f"{disk.folder}/reports/"
             f"{reports[0].name}")
    assert confirmed(daemon_on)[0]["report_note"]
    assert sorted(path.stat().st_mode & 0o027 for path in reports[0].iterdir()) == [0] * 4


def test_a_daemon_that_stops_on_a_full_disk_lists_what_it_lost(disk, daemon_on, start_job):
    disk.fill()
    start_job(daemon_on)
    wait_for(lambda: confirmed(daemon_on))
    begun = time.monotonic()
    daemon_on.kill()
    assert time.monotonic() - begun < PATIENCE
    said = daemon_on.read_rest()
    assert "cannot write the report" in said and "No space left on device" in said


def test_run_prints_a_hang_whose_report_it_cannot_write(disk):
    # Only the job can see this disk, so the job itself fills it.
    script = ('"$0" run --sim --hang-after=3s --on-hang=abort --report-dir="$1/reports" -- '
              'sh -c "cat /dev/zero > $1/filler 2> $1/../said; shift; exec \\"\\$@\\"" sh "$@"')
    done = subprocess.run(
        disk.command("sh", "-c", script, ROLLCALL, disk.folder, VICTIMS / "ranks", "-n", "4",
                     "--keep-going", "--", VICTIMS / "one_rank_stops_calling"),
        capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL)
    assert done.returncode == 75, done.stderr
    assert "rank 3" in done.stderr
    assert "not written yet: cannot" in done.stderr and "No space left on device" in done.stderr
