# SPDX-License-Identifier: Apache-2.0
"""A job, from its start to its end or to a limit, and what Rollcall said about it."""

import contextlib
import json
import pathlib
import signal
import subprocess


class WatchedJob:
    """The command is that of `rollcall run`, with `reports` as its folder of reports."""

    def __init__(self, work):
        self.work = pathlib.Path(work)
        self.reports = self.work / "reports"
        self.output_file = self.work / "output"
        self.command, self.env = [], None

    def upset(self):
        """What befalls the job from outside."""
        return contextlib.nullcontext()

    def go(self, limit):
        """Runs the job to its end. exit_code -1: the test ended the job at the limit."""
        with open(self.output_file, "w") as output, self.upset():
            self.process = subprocess.Popen(self.command, env=self.env, stdin=subprocess.DEVNULL,
                                            stdout=output, stderr=subprocess.STDOUT)
            try:
                self.exit_code = self.process.wait(timeout=limit)
            except subprocess.TimeoutExpired:
                self.exit_code = -1
                self.process.send_signal(signal.SIGTERM)
                self.process.wait(timeout=120)
        return self

    @property
    def output(self):
        return self.output_file.read_text(errors="replace")

    @property
    def said(self):
        """Rollcall's own lines."""
        return [line for line in self.output.splitlines() if line.startswith("rollcall:")]

    @property
    def incidents(self):
        return [json.loads(file.read_text())
                for file in sorted(self.reports.glob("*/incident.json"))]

    def lacks_stacks(self):
        """On a busy machine the report may be written, and the job ended, before the stacks come."""
        texts = [file.read_text() for file in self.reports.glob("*/stacks.txt")]
        return texts == ["No stacks.\n"]
