# SPDX-License-Identifier: Apache-2.0
"""Commands beside a flood of connections that the daemon's own user makes, and while the daemon stands still."""
import resource
import signal
import socket
import subprocess
import sys
import time

import pytest
from conftest import ROLLCALL, rollcall
from processes import free_port, read_until

# Keeps as many silent connections as it can, and makes a new one for each that ends.
FLOOD = """
import select, socket, sys
poll, open_ones = select.poll(), {}
while True:
    while len(open_ones) < int(sys.argv[2]):
        one = socket.socket()
        one.setblocking(False)
        if one.connect_ex(("127.0.0.1", int(sys.argv[1]))) not in (0, 115):
            break
        open_ones[one.fileno()] = one
        poll.register(one, select.POLLIN)
    for fd, _ in poll.poll(5):
        poll.unregister(fd)
        open_ones.pop(fd).close()
"""


def test_a_command_is_served_beside_a_flood_of_silent_connections(start_daemon):
    daemon = start_daemon()
    resource.prlimit(daemon.process.pid, resource.RLIMIT_NOFILE, (1024, 1024))
    port = daemon.address.rpartition(":")[2]
    flood = subprocess.Popen(["prlimit", "--nofile=4096:4096", sys.executable, "-c", FLOOD, port, "3000"])
    try:
        time.sleep(3)
        done = rollcall("status", f"--daemon={daemon.address}")
    finally:
        flood.kill()
        flood.wait()
    assert done.returncode == 0, done.stderr


def test_a_daemon_that_stands_still_for_some_seconds_is_waited_for(daemon):
    daemon.process.send_signal(signal.SIGSTOP)
    asked = subprocess.Popen([ROLLCALL, "status", f"--daemon={daemon.address}"], stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, text=True)
    said = read_until(asked, "does not answer yet; waiting for it")
    daemon.process.send_signal(signal.SIGCONT)
    out, err = asked.communicate(timeout=120)
    assert asked.returncode == 0, err
    assert "no jobs" in out
    assert (said + err).count("does not answer yet; waiting for it") == 1


def test_where_nobody_listens_a_command_says_so_at_once():
    done = rollcall("status", f"--daemon=127.0.0.1:{free_port()}")
    assert done.returncode == 1 and "Connection refused" in done.stderr
    assert "waiting" not in done.stderr


@pytest.mark.long
def test_a_listener_that_never_answers_is_given_up():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        done = rollcall("status", f"--daemon=127.0.0.1:{silent.getsockname()[1]}")
    assert done.returncode == 1
    assert "does not accept connections" in done.stderr
