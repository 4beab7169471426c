# SPDX-License-Identifier: Apache-2.0
"""Starts idle programs of other people. PROGRAMS has a function for each, which returns a Started
or raises Missing. It gets the folder of the build and an empty folder that it may fill."""
import contextlib
import os
import pathlib
import pwd
import select
import shutil
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
SOURCES = HERE / "programs"
READY_SECONDS = 120
# An idle program uses no more CPU time than this between two looks, several times in a row.
IDLE_TICKS = 2
LOOK_SECONDS = 1
IDLE_LOOKS = 2


class Missing(Exception):
    """What is not installed."""


def need(program):
    found = shutil.which(str(program))
    if found is None:
        raise Missing(f"{program} is not installed")
    return found


def with_children(pid):
    """The process and all below it."""
    found = [pid]
    for entry in pathlib.Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, ValueError):
            if int(entry.read_text().rpartition(")")[2].split()[1]) == pid:
                found += with_children(int(entry.parent.name))
    return found


def cpu_ticks(pids):
    """The CPU time of the processes, in ticks of the kernel."""
    ticks = 0
    for pid in pids:
        with contextlib.suppress(OSError, ValueError):
            fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            ticks += int(fields[11]) + int(fields[12])
    return ticks


class Started:
    """A running command. It has printed "ready", or has run for `seconds` if it never does, and is
    idle."""

    def __init__(self, command, seconds=None, user=None, processes=1):
        self.command = [str(word) for word in command]
        self.helper = None  # another Started, which makes the program do something
        self.folder = None  # which end() removes
        self.process = subprocess.Popen(
            self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            start_new_session=True, user=user)
        try:
            if seconds is None:
                self.wait_until_ready()
            else:
                time.sleep(seconds)
            self.wait_until_idle(processes)
            if self.process.poll() is not None:
                raise RuntimeError(f"{self.command[0]} has ended: {self.process.returncode}")
        except BaseException:
            self.end()
            raise

    def wait_until_ready(self):
        deadline = time.monotonic() + READY_SECONDS
        said = b""
        while b"ready" not in said:
            left = max(deadline - time.monotonic(), 0)
            readable, _, _ = select.select([self.process.stdout], [], [], left)
            piece = os.read(self.process.stdout.fileno(), 4096) if readable else b""
            if not piece:
                raise RuntimeError(f"{self.command[0]} does not get ready: {said.decode()}")
            said += piece

    def wait_until_idle(self, processes=1):
        """Waits until so many processes are idle. Gives up after a time: the test then judges
        threads that may run."""
        deadline = time.monotonic() + READY_SECONDS
        before, looks = None, 0
        while looks < IDLE_LOOKS and time.monotonic() < deadline:
            pids = self.pids()
            now = pids, cpu_ticks(pids)
            idle = before and before[0] == pids and now[1] - before[1] <= IDLE_TICKS
            looks = looks + 1 if idle and len(pids) >= processes else 0
            before = now
            time.sleep(LOOK_SECONDS)

    def pids(self):
        return with_children(self.process.pid) + (self.helper.pids() if self.helper else [])

    def end(self):
        if self.helper:
            self.helper.end()
        for pid in reversed(with_children(self.process.pid)):
            with contextlib.suppress(OSError):
                os.kill(pid, 9)
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()
        if self.folder:
            shutil.rmtree(self.folder, ignore_errors=True)


def start_frame_victim(build, _):
    return Started([build / "victims" / "frame_victim"])


def start_stack_victim(build, _):
    return Started([build / "victims" / "stack_victim", "blocked", "0"])


def start_musl(_, scratch):
    program = scratch / "musl_threads"
    subprocess.run([need("musl-gcc"), "-static", "-O2", "-g", "-pthread", "-o", program,
                    SOURCES / "musl_threads.c"], check=True)
    return Started([program])


def start_chromium(_, scratch):
    return Started([need("chromium"), "--headless", "--no-sandbox", "--disable-gpu",
                    f"--user-data-dir={scratch}/chromium", "--remote-debugging-port=0",
                    SOURCES / "page.html"], seconds=5, processes=8)


def start_java(_, scratch):
    subprocess.run([need("javac"), "-d", scratch, SOURCES / "Threads.java"], check=True)
    return Started([need("java"), "-cp", scratch, "Threads"])


def start_node(_, __):
    return Started([need("node"), SOURCES / "threads.js"])


def start_node_reading(_, __):
    return Started([need("node"), SOURCES / "threads.js", "read"])


def start_postgresql(_, __):
    """A server of its own, and a client that sleeps in it."""
    found = sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin/postgres"))
    if not found:
        raise Missing("PostgreSQL is not installed")
    programs = found[-1].parent
    user = pwd.getpwnam("postgres").pw_uid if os.geteuid() == 0 else None  # it refuses to be root
    # Its user cannot reach the test's folder.
    data = pathlib.Path(tempfile.mkdtemp())
    try:
        if user is not None:
            os.chown(data, user, -1)
        subprocess.run([programs / "initdb", "-D", data], user=user, check=True,
                       capture_output=True)
        server = Started([programs / "postgres", "-D", data, "-h", "", "-k", data], 3, user)
    except BaseException:
        shutil.rmtree(data)
        raise
    server.folder = data
    server.helper = Started([programs / "psql", "-h", data, "-d", "postgres", "-c",
                             "select pg_sleep(86400)"], 2, user)
    return server


def start_go(scratch, with_c):
    binary = scratch / "goroutines"
    sources = [SOURCES / "goroutines.go", SOURCES / ("in_c.go" if with_c else "not_in_c.go")]
    subprocess.run([need("go"), "build", "-o", binary, *sources], check=True,
                   env={**os.environ, "CGO_ENABLED": str(int(with_c)), "GO111MODULE": "off",
                        "GOCACHE": f"{scratch}/gocache", "GOFLAGS": "", "HOME": str(scratch)})
    return Started([binary])


def start_rust(_, scratch):
    binary = scratch / "threads"
    subprocess.run([need("rustc"), "-O", "-g", "-o", binary, SOURCES / "threads.rs"], check=True)
    return Started([binary])


def start_python(version):
    def start(_, __):
        pattern = f".pyenv/versions/{version}.*/bin/python{version}"
        found = sorted(pathlib.Path.home().glob(pattern))
        return Started([found[-1] if found else need(f"python{version}"), SOURCES / "threads.py"])
    return start


def start_torch(_, __):
    python = ROOT / "build" / "torch-venv" / "bin" / "python"
    if not python.exists():
        raise Missing("there is no build/torch-venv (deploy/setup_parts.sh torch makes it)")
    return Started([python, SOURCES / "threads.py"])


def start_grpc(_, __):
    for python in [sys.executable, ROOT / "build" / "torch-venv" / "bin" / "python"]:
        if not shutil.which(python):
            continue
        if not subprocess.run([python, "-c", "import grpc"], check=False,
                              capture_output=True).returncode:
            return Started([python, SOURCES / "grpc_server.py"])
    raise Missing("no Python has grpcio")


def start_daemon(build, scratch):
    program = build / "bin" / "rollcalld"
    if not program.exists():
        raise Missing("rollcalld is not built")
    return Started([program, "--listen=127.0.0.1:0", "--http=127.0.0.1:0",
                    f"--report-dir={scratch}/reports"], 3)


OURS = {
    "frames that are hard to unwind": start_frame_victim,
    "blocked threads": start_stack_victim,
    "a static program with musl": start_musl,
    "gRPC server in C++": start_daemon,
}
PROGRAMS = {
    **OURS,
    "Chromium": start_chromium,
    "JVM": start_java,
    "Node": start_node,
    "Node, main thread in read": start_node_reading,
    "PostgreSQL": start_postgresql,
    "Go": lambda _, scratch: start_go(scratch, False),
    "Go with C": lambda _, scratch: start_go(scratch, True),
    "Rust": start_rust,
    **{f"Python 3.{minor}": start_python(f"3.{minor}") for minor in range(8, 15)},
    "PyTorch": start_torch,
    "gRPC server in Python": start_grpc,
}
