# SPDX-License-Identifier: Apache-2.0
"""A terminal for programs that behave otherwise on one."""
import fcntl
import os
import pty
import select
import struct
import subprocess
import termios
import time

from processes import PATIENCE


class Terminal:
    """A program on a pseudo-terminal. Tests read its output."""

    def __init__(self, command, env, rows=24, columns=80):
        self.main, end = pty.openpty()
        self.resize(rows, columns)
        self.process = subprocess.Popen(command, stdin=end, stdout=end, stderr=end, env=env,
                                        start_new_session=True,
                                        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
        os.close(end)
        self.text = b""

    def resize(self, rows, columns):
        fcntl.ioctl(self.main, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def read_until(self, wanted, seconds=PATIENCE):
        deadline = time.monotonic() + seconds
        while wanted not in self.text:
            left = deadline - time.monotonic()
            assert left > 0, self.text
            if select.select([self.main], [], [], left)[0]:
                self.text += os.read(self.main, 65536)
        return self.text

    def press(self, keys):
        os.write(self.main, keys)
