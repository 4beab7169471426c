# SPDX-License-Identifier: Apache-2.0
"""`rollcall run --gpu-dump`, with stand-ins for the CUDA driver in the ranks (gpu_driver.py) and for NVIDIA's cuda-gdb:
what it asks, whom, what the report says, and that it touches nothing without the flag. That a process goes on after
a dump of its GPU only tests/gpu can show."""

import os
import pathlib
import re
import subprocess
import sys
import time

import pytest
from conftest import ROLLCALL
from watched_job import WatchedJob

LIMIT_SECONDS = 240
PROGRAM = pathlib.Path(__file__).parent / "recorded_rank.py"

# In the form of NVIDIA's manual.
DEBUGGER = """#!/bin/sh
cat <<'END'
Opening GPU coredump: /tmp/x
  Kernel Parent Dev Grid Status       SMs Mask GridDim  BlockDim Invocation
*      0      -   0   53 Active 0x000000000003 (2,1,1) (96,1,1) spin(flag=0x7f00, limit=3)
  BlockIdx ThreadIdx To BlockIdx To ThreadIdx Count                 PC   Filename  Line
Kernel 0
*  (0,0,0)   (0,0,0)     (0,0,0)     (95,0,0)    96 0x00007f2e6fbff300 /x/spin.cu    31
   (1,0,0)   (0,0,0)     (1,0,0)     (63,0,0)    64 0x00007f2e6fbff300 /x/spin.cu    31
   (1,0,0)  (64,0,0)     (1,0,0)     (95,0,0)    32 0x00007f2e6fbff400 /x/spin.cu    40
END
"""


class DumpedJob(WatchedJob):
    def go_until(self, dumps):
        """Ends the job, unless Rollcall has, as soon as its report has so many dumps."""
        with open(self.output_file, "w") as output:
            self.process = subprocess.Popen(self.command, env=self.env, stdin=subprocess.DEVNULL,
                                            stdout=output, stderr=subprocess.STDOUT)
        deadline = time.monotonic() + LIMIT_SECONDS
        while self.process.poll() is None and time.monotonic() < deadline and not self.has(dumps):
            time.sleep(0.2)
        self.process.terminate()
        self.process.wait(timeout=120)
        return self

    def has(self, dumps):
        try:
            return any(len(incident["gpu_dumps"]) >= dumps for incident in self.incidents)
        except (OSError, ValueError):  # it is being written
            return False


@pytest.fixture
def job(tmp_path):
    """job(flags, env={}, debugger=TEXT, dumps=2): a job whose rank 1 is missing, until its report has so many dumps.
    It is ended on a hang: that waits for the dumps. debugger=None: none is installed."""
    def start(*flags, env=None, debugger=DEBUGGER, dumps=2):
        watched = DumpedJob(tmp_path)
        watched.command = [str(ROLLCALL), "run", "--hang-after=5s", "--on-hang=abort",
                           f"--report-dir={watched.reports}", *flags, "--", sys.executable, str(PROGRAM), "8", "7", "8"]
        programs = tmp_path / "programs"
        programs.mkdir()
        if debugger is not None:
            (programs / "cuda-gdb").write_text(debugger)
            (programs / "cuda-gdb").chmod(0o755)
        watched.env = dict(os.environ, PATH=f"{programs}:{os.environ['PATH']}", **(env or {}))
        return watched.go_until(dumps)
    return start


def the_incident(watched):
    assert watched.incidents, watched.output
    return watched.incidents[0]


def dumps_of(watched):
    dumps = the_incident(watched)["gpu_dumps"]
    assert [(dump["rank"], dump["is_culprit"]) for dump in dumps] == [(1, True), (0, False)], dumps
    return dumps


def test_a_confirmed_hang_says_where_the_kernels_stand(job):
    watched = job("--gpu-dump")
    for dump in dumps_of(watched):
        assert dump["note"] == ""
        (kernel,) = dump["kernels"]
        assert (kernel["name"], kernel["grid"], kernel["block"]) == ("spin", "(2,1,1)", "(96,1,1)")
        assert kernel["threads"] == 192
        assert kernel["places"][0] == {"at": "/x/spin.cu:31", "threads": 160}
    (text,) = watched.reports.glob("*/report.txt")
    assert "160 of 192 threads at /x/spin.cu:31" in " ".join(text.read_text().split())
    assert any("not tried on real hardware" in line for line in watched.said)
    assert "limit=3" not in text.read_text()


def test_the_hang_ends_the_job_once_the_dumps_are_there(job):
    watched = job("--gpu-dump", dumps=99)
    assert watched.process.returncode == 75, watched.output
    assert len(dumps_of(watched)) == 2


def test_nothing_is_asked_without_the_flag(job):
    watched = job(env={"CUDA_COREDUMP_PIPE": "/nowhere/pipe.%p"}, dumps=0)
    assert the_incident(watched)["gpu_dumps"] == []
    assert "gpu-dump" not in watched.output


def test_without_the_debugger_the_dump_stays_and_is_named(job):
    watched = job("--gpu-dump", debugger=None)
    notes = [dump["note"] for dump in dumps_of(watched)]
    assert all("cuda-gdb is not installed" in note for note in notes), notes
    (file,) = re.findall(r"target cudacore (/tmp/rollcall-gpu-\S+)'", watched.output)
    folder = pathlib.Path(file).parent
    assert folder.stat().st_mode & 0o777 == 0o700
    kept = sorted(folder.iterdir())
    assert len(kept) == 2 and all(path.name.startswith("core.") for path in kept)
    for path in kept:
        path.unlink()
    folder.rmdir()


def test_a_driver_that_does_not_answer_delays_the_end_of_the_job_and_nothing_else(job):
    watched = job("--gpu-dump", env={"GPU_DRIVER_IS_SILENT": "1"})
    assert all("none came within" in dump["note"] for dump in dumps_of(watched))


def test_the_users_own_settings_stay_and_that_is_said(job):
    watched = job("--gpu-dump", env={"CUDA_COREDUMP_FILE": "/x/core.%p"}, dumps=0)
    assert the_incident(watched)["gpu_dumps"] == []
    assert any("CUDA_COREDUMP_FILE" in line for line in watched.said)


def test_a_debugger_that_fails_leaves_its_reason(job):
    watched = job("--gpu-dump", debugger="#!/bin/sh\necho 'Failed to read core file: not an ELF file' >&2\nexit 1\n")
    assert all("not an ELF file" in dump["note"] for dump in dumps_of(watched))
