# SPDX-License-Identifier: Apache-2.0
"""A job that runs without Rollcall, and what `rollcall diagnose` says of it from outside."""

import contextlib
import json
import os
import signal
import subprocess
import time

HANG, CANNOT_TELL, NOTHING = 3, 2, 0


class Look:
    """One `rollcall diagnose`, of the jobs of some processes."""

    def __init__(self, rollcall, *arguments):
        begin = time.monotonic()
        done = subprocess.run([str(rollcall), "diagnose", "--format=json", *map(str, arguments)],
                              capture_output=True, text=True, timeout=120, check=False)
        self.seconds = time.monotonic() - begin
        self.exit_code, self.errors, self.text = done.returncode, done.stderr, done.stdout
        self.incidents = list(_documents(done.stdout))

    @property
    def verdict(self):
        """Of the first job that hangs, or may hang."""
        return next((incident["verdicts"][0] for incident in self.incidents if incident["verdicts"]), None)

    @property
    def culprits(self):
        return tuple(sorted(culprit["rank"] for culprit in self.verdict["culprits"])) if self.verdict else ()

    @property
    def reasons(self):
        """Why nothing is said."""
        return "; ".join(incident["look"]["why"] for incident in self.incidents) or self.text[:300] + self.errors


def _documents(text):
    decoder, at = json.JSONDecoder(), 0
    while at < len(text):
        document, at = decoder.raw_decode(text, at)
        yield document
        at = next((i for i in range(at, len(text)) if not text[i].isspace()), len(text))


@contextlib.contextmanager
def running(command, folder, env=None):
    """The job in a session of its own, with its output in a file. It is ended with all that it has started."""
    with open(folder / "output", "w") as output:
        job = subprocess.Popen(command, env={**os.environ, **(env or {})}, stdin=subprocess.DEVNULL,
                               stdout=output, stderr=subprocess.STDOUT, start_new_session=True)
        try:
            yield job
        finally:
            job.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                job.wait(timeout=120)
            with contextlib.suppress(ProcessLookupError):
                os.killpg(job.pid, signal.SIGKILL)  # it may have left processes behind
            job.wait()


def record_culprits(record_property, name, look, culprits, names_all=False):
    """Records for the table at the end whether the look names the culprits, and whether one of them at least. Returns
    the first, and what was said. names_all: a verdict that names no rank is right in part."""
    said = look.verdict["summary"] if look.verdict else look.reasons
    whole = bool(look.verdict) and look.culprits == culprits
    part = whole or bool(set(look.culprits) & set(culprits)) or (names_all and bool(look.verdict) and not look.culprits)
    record_property("culprits", (name, str(look.culprits), whole, said))
    record_property("at least one of them", (name, str(look.culprits), part, said))
    return whole, said


def look_until_it_hangs(rollcall, job, seconds, *arguments):
    """The first look that finds a hang, if only a possible one, or the last one."""
    deadline = time.monotonic() + seconds
    while True:
        look = Look(rollcall, *arguments, job.pid)
        if look.exit_code == HANG or look.verdict or time.monotonic() > deadline or job.poll() is not None:
            return look
