# SPDX-License-Identifier: Apache-2.0
"""The real programs of one round: a daemon, an agent for each host, and the ranks of a job. Each
round has an address of its own (127.x.y.1), so ports meet no other program's."""
import http.client
import json
import os
import pathlib
import signal
import subprocess
import time
import urllib.request

BUILD = pathlib.Path(os.environ["ROLLCALL_BUILD"])
JOB = "chaos"
STOP_SECONDS = 60


def wait_for(what, seconds, condition):
    """Returns the first true value of `condition`."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        found = condition()
        if found:
            return found
        time.sleep(0.1)
    raise AssertionError(f"not within {seconds} s: {what}")


class Program:
    """One process, which can be started again. What it says goes to a file."""

    def __init__(self, name, command, folder, env=None):
        self.name, self.command, self.env = name, command, {**os.environ, **(env or {})}
        self.log = folder / f"{name}.log"
        self.process = None
        self.kills, self.stops = [], []  # times of SIGKILL; of SIGTERM
        self.start()

    def start(self):
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=log,
                                            stderr=log, env=self.env)

    def send(self, number):
        assert self.is_alive(), f"{self.name} has ended by itself: {self.process.returncode}"
        self.process.send_signal(number)

    def stop(self, number=signal.SIGTERM):
        self.send(number)
        (self.kills if number == signal.SIGKILL else self.stops).append(time.monotonic())
        self.process.wait(timeout=STOP_SECONDS)

    def is_alive(self):
        return self.process.poll() is None

    def end(self):
        if self.is_alive():
            self.process.kill()
        self.process.wait()


class SteppedClock:
    """What a program gets to have a wall clock that the test steps."""

    def __init__(self, file):
        self.file = file
        self.step(0)
        self.env = {"LD_PRELOAD": str(BUILD / "tests" / "stepped_clock.so"), "STEP_FILE": str(file)}

    def step(self, seconds):
        new = self.file.with_suffix(".new")
        new.write_text(f"{seconds}\n")
        new.rename(self.file)


class Disk:
    """A small file system that only programs started by command() see. It outlives the daemon."""

    SIZE = "8m"

    def __init__(self, folder):
        self.folder = folder
        self.full = []  # (from, to), times
        folder.mkdir()
        mount = ('mount --make-rprivate / && '
                 f'mount -t tmpfs -o size={self.SIZE} small "{folder}" && '
                 'echo up && exec sleep 100000')
        self.holder = subprocess.Popen(["unshare", "--mount", "sh", "-c", mount],
                                       stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.is_small = self.holder.stdout.readline() == "up\n"
        self.inside = folder
        if self.is_small:
            self.inside = pathlib.Path(f"/proc/{self.holder.pid}/root{folder}")

    def command(self, *arguments):
        enter = ["nsenter", f"--target={self.holder.pid}", "--mount", "--"] if self.is_small else []
        return [*enter, *arguments]

    def fill(self):
        """Does nothing where nobody may mount a file system."""
        if not self.is_small:
            return
        self.full.append((time.monotonic(), float("inf")))
        with open(self.inside / "filler", "wb", buffering=0) as filler:
            try:
                while filler.write(bytes(4096)) == 4096:
                    pass
            except OSError:
                return  # the disk is full

    def free(self):
        (self.inside / "filler").unlink(missing_ok=True)
        self.full = [(begin, min(end, time.monotonic())) for begin, end in self.full]

    def end(self):
        self.holder.kill()
        self.holder.wait()


class Daemon(Program):
    PORT, PAGE_PORT = 7655, 7656

    def __init__(self, folder, host, disk, hang_after, receiver):
        self.page = f"http://{host}:{self.PAGE_PORT}"
        self.disk = disk
        self.clock = SteppedClock(folder / "clock-of-daemon")
        super().__init__("daemon", disk.command(
            BUILD / "bin" / "rollcalld", f"--listen={host}:{self.PORT}",
            f"--http={host}:{self.PAGE_PORT}", f"--hang-after={hang_after}s",
            f"--report-dir={disk.folder}/reports", f"--alert=json={receiver}"), folder,
            env=self.clock.env)

    def ask(self, path):
        with urllib.request.urlopen(f"{self.page}/api/v1/{path}", timeout=2) as answer:
            return json.load(answer)

    def try_ask(self, path):
        """Nothing while the daemon is down, frozen or starting."""
        try:
            return self.ask(path)
        except (OSError, ValueError, http.client.HTTPException):
            return None

    def incidents(self):
        answer = self.try_ask("incidents")
        return None if answer is None else answer["incidents"]

    def reports(self):
        """The incidents as the reports on the disk have them."""
        files = (self.disk.inside / "reports").glob("[!.]*/incident.json")
        return [json.loads(file.read_text()) for file in files]


class Agent(Program):
    def __init__(self, folder, name, daemon):
        self.folder = folder / f"segments-{name}"
        self.folder.mkdir(mode=0o700)
        self.clock = SteppedClock(folder / f"clock-of-{name}")
        super().__init__(f"agent-{name}", [
            BUILD / "bin" / "rollcall-agent", f"--daemon={daemon}", f"--dir={self.folder}",
            "--scope=directory", f"--host={name}"], folder, env=self.clock.env)


class Job:
    """The ranks. The files in its folder tell them what to do: see chaos_rank.cc."""

    def __init__(self, folder, segments_of_rank):
        self.folder = folder / "job"
        self.folder.mkdir()
        self.ranks = [self._start(folder, rank, len(segments_of_rank), segments)
                      for rank, segments in enumerate(segments_of_rank)]

    def _start(self, folder, rank, size, segments):
        return Program(f"rank-{rank}", [BUILD / "tests" / "chaos_rank"], folder, env={
            "LD_PRELOAD": str(BUILD / "lib" / "librollcall.so"),
            "LD_LIBRARY_PATH": str(BUILD / "sim"), "ROLLCALL_DIR": str(segments),
            "ROLLCALL_JOB": JOB, "RANK": str(rank), "WORLD_SIZE": str(size),
            "ROLLCALL_TEST_ID_FILE": str(self.folder / "id"), "CHAOS_DIR": str(self.folder)})

    def go_wrong(self, fault, rank):
        new = self.folder / f"fault.{rank}.new"
        new.write_text(f"{fault}\n")
        new.rename(self.folder / f"fault.{rank}")

    def longest_gap(self, meant=(0, 0)):
        """Seconds for which a rank has stood still at most, without the time from meant[0] to
        meant[1], in which the job was to stand still."""
        longest = 0
        for file in self.folder.glob("gaps.*"):
            for line in file.read_text().splitlines():
                begin, end = map(float, line.split())
                overlap = max(0, min(end, meant[1]) - max(begin, meant[0]))
                longest = max(longest, end - begin - overlap)
        return longest

    def collect_ended(self):
        for rank in self.ranks:
            rank.process.poll()

    def finish(self):
        """The job ends in good order."""
        (self.folder / "end").touch()
        for rank in self.ranks:
            assert rank.process.wait(timeout=STOP_SECONDS) == 0, f"{rank.name} has failed"

    def end(self):
        """As a launcher ends a job that failed."""
        for number in (signal.SIGTERM, signal.SIGCONT):
            for rank in self.ranks:
                rank.process.send_signal(number)  # does nothing if the rank has ended
        for rank in self.ranks:
            rank.process.wait(timeout=STOP_SECONDS)

    def kill(self):
        for rank in self.ranks:
            rank.end()
