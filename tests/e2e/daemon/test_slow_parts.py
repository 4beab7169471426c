# SPDX-License-Identifier: Apache-2.0
"""One part that hangs (a client, a receiver of alerts, a file) does not stop the others."""
import ctypes
import json
import os
import resource
import signal
import socket
import sqlite3
import subprocess
import threading
import time
import urllib.request

import pytest
from conftest import PATIENCE, ROLLCALL, VICTIMS, long, read_until, reports_in, wait_for
from test_full_disk import confirmed


class Silent:
    """A receiver of alerts that accepts connections and never answers."""

    def __init__(self):
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"json=http://127.0.0.1:{self.socket.getsockname()[1]}/hook"


def connect(page):
    host, port = page.removeprefix("http://").split(":")
    return socket.create_connection((host, int(port)), timeout=120)


def slow_connections(page, count):
    """Connections that have sent a part of a request."""
    connections = []
    for _ in range(count):
        connections.append(connect(page))
        try:
            connections[-1].sendall(b"GET / HTTP/1.1\r\nHo")
        except OSError:
            pass  # the daemon closed it to make room for the next one
    return connections


def is_healthy(page):
    """The daemon waits ten seconds for the rest of a request, and may not wait so long for any of them."""
    return urllib.request.urlopen(f"{page}/healthz", timeout=8).read() == b"ok\n"


@pytest.mark.parametrize("count", [140, long(1100)])
def test_slow_connections_delay_neither_the_page_nor_a_report(
        count, tmp_path, start_daemon, start_job):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < count + 200:
        pytest.skip(f"this process may open {hard} files")
    daemon = start_daemon()
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, count + 200), hard))
    # As many as the usual limit allows: at this number the daemon had no descriptor for its report.
    resource.prlimit(daemon.process.pid, resource.RLIMIT_NOFILE, (1024, hard))
    connections = slow_connections(daemon.page, count)
    try:
        assert is_healthy(daemon.page)
        start_job(daemon)
        wait_for(lambda: reports_in(tmp_path / "daemon-reports"))
        assert is_healthy(daemon.page)
    finally:
        for connection in connections:
            connection.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.long
def test_a_daemon_may_open_as_many_files_as_it_can_and_its_commands_as_many_as_before(
        tmp_path, start_daemon, start_job):
    usual = resource.getrlimit(resource.RLIMIT_NOFILE)
    told = tmp_path / "told"
    resource.setrlimit(resource.RLIMIT_NOFILE, (512, usual[1]))
    try:
        daemon = start_daemon(f"--alert=exec=ulimit -S -n > {told}")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, usual)
    soft, hard = resource.prlimit(daemon.process.pid, resource.RLIMIT_NOFILE)
    assert soft == min(hard, 1 << 20) and soft > 512
    start_job(daemon)
    assert wait_for(lambda: told.exists() and told.read_text()) == "512\n"


def test_a_receiver_of_alerts_that_never_answers_delays_no_other(tmp_path, start_daemon, start_job):
    told = tmp_path / "told"
    # One try at such a receiver takes ten seconds: one after the other would take longer than PATIENCE.
    silent = [Silent() for _ in range(10)]
    daemon = start_daemon(*(f"--alert={one.url}" for one in silent), f"--alert=exec=cat > {told}",
                          "--alert=exec=sleep 1000")
    start_job(daemon)
    wait_for(lambda: told.exists() and told.read_text())
    assert json.loads(told.read_text())["cause"] == "missing_rank"
    wait_for(lambda: reports_in(tmp_path / "daemon-reports"))


@pytest.mark.long
def test_a_daemon_stops_in_time_whatever_hangs(tmp_path, start_daemon, start_job):
    silent = Silent()
    history = tmp_path / "history.db"
    daemon = start_daemon(f"--alert={silent.url}", "--alert=exec=sleep 1000", f"--history={history}")
    start_job(daemon)
    report = wait_for(lambda: reports_in(tmp_path / "daemon-reports"))[0]
    # A write to a FIFO waits for a reader, as a write to a dead file server waits.
    os.mkfifo(report / ".stacks.txt.new")
    lock = sqlite3.connect(history, isolation_level=None)
    lock.execute("BEGIN IMMEDIATE")
    start_job(daemon, name="another-job")
    wait_for(lambda: len(confirmed(daemon)) == 2)
    viewer = connect(daemon.page)
    viewer.sendall(b"GET /api/v1/events HTTP/1.1\r\n\r\n")
    begun = time.monotonic()
    daemon.process.send_signal(signal.SIGTERM)
    daemon.process.wait(timeout=120)
    assert time.monotonic() - begun < PATIENCE
    said = daemon.read_rest()
    assert "(json): the receiver does not respond" in said
    assert "in the history" in said and "cannot save" in said


@pytest.mark.parametrize("frozen", ["before_it_starts", long("while_it_runs")])
def test_a_frozen_daemon_does_not_delay_the_end_of_a_run(start_daemon, frozen):
    daemon = start_daemon()
    if frozen == "before_it_starts":
        daemon.process.send_signal(signal.SIGSTOP)
    job = subprocess.Popen([ROLLCALL, "run", "--sim", f"--daemon={daemon.address}", "--", "sh", "-c",
                            f"{VICTIMS}/ranks -n 4 -- {VICTIMS}/healthy_mix; echo done; read end; "
                            "exit 7"],
                           stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                           text=True)
    try:
        while job.stdout.readline() != "done\n":
            assert job.poll() is None
        daemon.process.send_signal(signal.SIGSTOP)
        time.sleep(1)  # the agent sends some ticks that no daemon reads
        begun = time.monotonic()
        said = job.communicate("end\n", timeout=120)[1]
        assert job.returncode == 7, said
        assert time.monotonic() - begun < PATIENCE, said
    finally:
        daemon.process.send_signal(signal.SIGCONT)


@pytest.fixture
def dead_folder(tmp_path):
    """A folder whose file system never answers, so every access blocks."""
    folder = tmp_path / "dead"
    folder.mkdir()
    libc = ctypes.CDLL(None, use_errno=True)
    try:
        server = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
    except OSError as problem:
        pytest.skip(f"no FUSE here: {problem}")
    options = f"fd={server},rootmode=40000,user_id=0,group_id=0"
    if libc.mount(b"dead", bytes(folder), b"fuse", 0, options.encode()) != 0:
        os.close(server)
        pytest.skip("no FUSE mounts are permitted here")
    yield folder
    os.close(server)  # processes that still wait get an error
    libc.umount2(bytes(folder), 2)


def test_a_job_runs_if_the_report_folder_never_answers(dead_folder):
    begun = time.monotonic()
    job = subprocess.run([ROLLCALL, "run", "--http=none", f"--report-dir={dead_folder}/reports",
                          "--", "sh", "-c", "exit 7"], stdin=subprocess.DEVNULL,
                         capture_output=True, text=True, timeout=120)
    assert job.returncode == 7
    assert f"{dead_folder}/reports does not answer" in job.stderr
    assert time.monotonic() - begun < PATIENCE


def test_a_job_runs_if_the_segment_folder_never_answers(dead_folder):
    begun = time.monotonic()
    job = subprocess.run([ROLLCALL, "run", "--http=none", "--", "sh", "-c", "exit 7"],
                         env={**os.environ, "ROLLCALL_DIR": str(dead_folder)},
                         stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120)
    assert job.returncode == 7
    assert "the job runs without Rollcall: the folder of the segments (ROLLCALL_DIR)" in job.stderr
    assert time.monotonic() - begun < PATIENCE


def test_a_stderr_that_nobody_reads_delays_neither_the_abort_nor_the_exit(tmp_path):
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    with pytest.raises(BlockingIOError):
        while True:
            os.write(writer, b"x" * 4096)
    os.set_blocking(writer, True)
    job = subprocess.Popen(
        [ROLLCALL, "run", "--sim", "--hang-after=3s", "--on-hang=abort", "--http=none",
         f"--report-dir={tmp_path}/reports", "--", "sh", "-c",
         f"exec {VICTIMS}/ranks -n 4 --keep-going -- {VICTIMS}/one_rank_stops_calling 2>/dev/null"],
        stdin=subprocess.DEVNULL, stderr=writer)
    try:
        assert job.wait(timeout=120) == 75
    finally:
        job.kill()
        os.close(reader)
        os.close(writer)
    assert len(list((tmp_path / "reports").iterdir())) == 1


@pytest.mark.parametrize("watched_by", ["itself", long("a_daemon")])
def test_a_report_folder_that_never_answers_delays_neither_output_nor_signals(
        dead_folder, start_daemon, watched_by):
    where = [f"--daemon={start_daemon().address}"] if watched_by == "a_daemon" else []
    job = subprocess.Popen(
        [ROLLCALL, "run", "--sim", "--hang-after=3s", "--http=none", *where,
         f"--report-dir={dead_folder}", "--", VICTIMS / "ranks", "-n", "4", "--keep-going", "--",
         VICTIMS / "one_rank_stops_calling"],
        stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    too_late = threading.Timer(2 * PATIENCE, job.kill)
    too_late.start()
    try:
        read_until(job, "rank 3")
        begun = time.monotonic()
        job.send_signal(signal.SIGTERM)
        said = job.communicate(timeout=120)[1]
        assert job.returncode == 128 + signal.SIGTERM
        assert time.monotonic() - begun < PATIENCE
        assert f"cannot write 1 report: {dead_folder} does not respond" in said
    finally:
        too_late.cancel()
        job.kill()


def test_names_from_the_network_do_not_control_a_terminal(tmp_path, start_daemon, start_job):
    daemon = start_daemon()
    start_job(daemon, name="a\x1b]0;title\x07\u009b31m\u202ejob")
    job = wait_for(lambda: confirmed(daemon))[0]["job"]
    assert job.startswith("a?]0;title?") and job.isprintable()
    report = wait_for(lambda: reports_in(tmp_path / "daemon-reports"))[0]
    for path in report.iterdir():
        text = path.read_text()
        assert not [c for c in text if c in "\x1b\x07\u009b\u202e"], path
