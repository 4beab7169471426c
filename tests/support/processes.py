# SPDX-License-Identifier: Apache-2.0
"""Processes under test: what they say, as it comes, and waiting for what they do."""
import contextlib
import os
import pathlib
import queue
import random
import re
import signal
import socket
import subprocess
import threading
import time

# How long a test waits for what comes at once on a quiet machine: a busy machine is slow, not wrong. What a test
# says must not be waited for takes longer than this.
PATIENCE = 90


def wait_for(condition, seconds=PATIENCE):
    """Waits until the condition returns a true value, and returns this value."""
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, f"the condition was not met within {seconds} s"
        time.sleep(0.05)
    return found


def free_ports(count):
    """Ports of the loopback that nobody has; all are different.

    They are none of those that the kernel gives to connections: else one of these could have it before its user.
    """
    first = int(pathlib.Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    found = []
    with contextlib.ExitStack() as stack:
        while len(found) < count:
            probe = stack.enter_context(socket.socket())
            with contextlib.suppress(OSError):  # somebody has it
                probe.bind(("127.0.0.1", random.randrange(10_000, max(first, 11_000))))
                found.append(probe.getsockname()[1])
    return found


def free_port():
    return free_ports(1)[0]


def read_until(process, words, seconds=PATIENCE):
    """Ends the process if it does not say the words."""
    said = ""
    with ended_after(process, seconds):
        for line in process.stderr:
            said += line
            if words in line:
                return said
    raise AssertionError(f"{words} was not said within {seconds} s\n{said}")


@contextlib.contextmanager
def ended_after(process, seconds):
    timer = threading.Timer(seconds, process.kill)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


class Lines:
    """What a process says, read as it comes: a full pipe would stop it."""

    def __init__(self, stream):
        self.lines = queue.SimpleQueue()
        threading.Thread(target=self._read, args=(stream,), daemon=True).start()

    def _read(self, stream):
        for line in stream:
            self.lines.put(line)
        self.lines.put("")

    def next(self, deadline):
        """None: there was none in time. "": there will be none."""
        try:
            line = self.lines.get(timeout=max(0, deadline - time.monotonic()))
        except queue.Empty:
            return None
        if not line:
            self.lines.put("")
        return line


class Service:
    """A rollcalld or rollcall-agent, ended by its pid."""

    def __init__(self, arguments, env=None):
        self.said = ""  # what read_until() has read
        self.process = subprocess.Popen(arguments, stderr=subprocess.PIPE, text=True, errors="replace",
                                        env={**os.environ, **(env or {})})
        self.lines = Lines(self.process.stderr)

    def read_until(self, pattern, seconds=PATIENCE):
        deadline = time.monotonic() + seconds
        while line := self.lines.next(deadline):
            self.said += line
            found = re.search(pattern, line)
            if found:
                return found
        ended = "before its end" if line == "" else f"within {seconds} s"
        raise AssertionError(f"{pattern} was not said {ended}\n{self.said}")

    def find_or_read_until(self, pattern):
        """As read_until(), for what it may have said before."""
        return re.search(pattern, self.said) or self.read_until(pattern)

    def kill(self, how=signal.SIGTERM):
        self.process.send_signal(how)
        self.process.wait(timeout=PATIENCE)

    def end(self):
        """Ends it, and returns all that it has said."""
        if self.process.poll() is None:
            self.kill()
        return self.read_rest()

    def read_rest(self, seconds=PATIENCE):
        """All that it has said, once nobody can say more."""
        deadline = time.monotonic() + seconds
        while line := self.lines.next(deadline):
            self.said += line
        assert line == "", f"somebody keeps its stderr open\n{self.said}"
        return self.said
