# SPDX-License-Identifier: Apache-2.0
"""`rollcall diagnose` where the kernel refuses something: it says what it could not do, and does the rest."""

import ctypes
import os
import pathlib
import subprocess
import sys

import pytest
from conftest import ROLLCALL
from diagnosed_job import CANNOT_TELL, HANG, Look
from processes import free_port, wait_for

pytestmark = pytest.mark.long

RANKS = pathlib.Path(__file__).with_name("meeting_ranks.py")
REFUSE = pathlib.Path(__file__).with_name("refuse_tracing.py")


@pytest.fixture
def ranks(tmp_path):
    """ranks(SIZE, *ARGUMENTS, last=COMMAND): processes with a rank each, which write into one log."""
    started = []

    def start(size, *arguments, last=None):
        place = {"WORLD_SIZE": str(size), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
        with open(tmp_path / "log", "w") as log:
            for rank in range(size):
                command = [sys.executable, RANKS, *map(str, arguments)] if rank < size - 1 or not last else last
                started.append(subprocess.Popen(command, stdout=log, env={**os.environ, **place, "RANK": str(rank)}))
        wait_for(lambda: (tmp_path / "log").read_text().count("stands here") == size)
        return list(started)

    yield start
    for process in started:
        process.kill()
        process.wait()


@pytest.fixture
def refusing(tmp_path):
    """refusing(SCOPE, PROCESSES): a `rollcall` where Yama permits no tracing of these processes: not by ptrace,
    and not by the files of /proc for which the kernel asks the same."""
    if subprocess.run(["unshare", "--mount", "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("this system permits no mount namespace")

    def make(scope, processes):
        settings = tmp_path / "sys-kernel"
        (settings / "yama").mkdir(parents=True)
        (settings / "yama" / "ptrace_scope").write_text(f"{scope}\n")
        files = [f"/proc/{process.pid}{task}/{file}" for process in processes for file in ("mem", "syscall", "stack")
                 for task in ("", f"/task/{process.pid}")]
        hidden = [file for file in files if pathlib.Path(file).exists()]
        closed = tmp_path / "closed"  # a device below it is refused
        closed.mkdir()
        mounts = [f"mount --bind {settings} /proc/sys/kernel", f"mount -t tmpfs -o nodev none {closed}",
                  f"mknod {closed}/file c 1 3", *(f"mount --bind {closed}/file {file}" for file in hidden)]
        program = tmp_path / "rollcall"
        program.write_text(f"#!/bin/sh\nexec unshare --mount sh -c '{' && '.join(mounts)} && exec \"$@\"' sh "
                           f'{sys.executable} {REFUSE} {ROLLCALL} "$@"\n')
        program.chmod(0o755)
        return program

    return make


@pytest.mark.parametrize("scope, words", [(1, "only a parent"), (2, "only an administrator"), (3, "no process")])
def test_says_why_it_has_no_stacks_and_shows_the_rest(ranks, refusing, scope, words):
    job = ranks(3, 1)
    look = Look(refusing(scope, job), job[0].pid)
    assert look.exit_code == CANNOT_TELL, look.text + look.errors
    seen = look.incidents[0]["look"]
    assert seen["ranks"] == 3 and seen["world_size"] == 3, seen
    assert "stacks of ranks 0-2 could not be taken" in seen["why"], seen["why"]
    assert any(words in line and f"kernel.yama.ptrace_scope is {scope}" in line for line in seen["unseen"]), seen
    assert seen["logs"][0]["lines"], "the log needs no tracing"


def test_names_a_dead_rank_without_stacks(ranks, refusing):
    job = ranks(3)
    job[1].kill()
    wait_for(lambda: pathlib.Path(f"/proc/{job[1].pid}/stat").read_text().split(")")[1].split()[0] == "Z")
    look = Look(refusing(2, [job[0], job[2]]), job[0].pid)
    assert look.exit_code == CANNOT_TELL, look.text + look.errors
    assert "rank 1 died (killed by signal 9)" in look.incidents[0]["look"]["why"], look.incidents[0]["look"]


VFORKS = """
#include <stdio.h>
#include <sys/prctl.h>
#include <unistd.h>
int main(void) {
  puts("stands here");
  fflush(stdout);
  if (vfork() == 0) {  // until this child ends, nothing interrupts its parent
    prctl(PR_SET_PDEATHSIG, 9);
    while (1) pause();
  }
  return 0;
}
"""


def test_names_a_rank_in_an_uninterruptible_wait(ranks, tmp_path):
    (tmp_path / "vforks.c").write_text(VFORKS)
    subprocess.run(["gcc", "-o", tmp_path / "vforks", tmp_path / "vforks.c"], check=True)
    job = ranks(3, last=[tmp_path / "vforks"])
    wait_for(lambda: pathlib.Path(f"/proc/{job[2].pid}/stat").read_text().split(")")[1].split()[0] == "D")
    look = Look(ROLLCALL, job[0].pid)
    assert look.seconds < 20
    assert look.exit_code in (HANG, CANNOT_TELL) and look.incidents[0]["look"]["ranks"] == 3, look.text + look.errors
    assert look.culprits == (2,), look.verdict["summary"]
    assert any("in state D" in line for line in look.verdict["evidence"]), look.verdict["evidence"]


PTRACE_SEIZE, PTRACE_DETACH = 0x4206, 17


def test_a_rank_in_a_debugger_is_said_to_be_in_one(ranks):
    job = ranks(3, 1)
    ptrace = ctypes.CDLL(None, use_errno=True).ptrace
    assert ptrace(PTRACE_SEIZE, job[1].pid, None, None) == 0, os.strerror(ctypes.get_errno())
    look = Look(ROLLCALL, job[0].pid)
    assert look.exit_code == CANNOT_TELL, look.text + look.errors
    assert "rank 1 is in a debugger" in look.incidents[0]["look"]["why"], look.text
    assert look.incidents[0]["look"]["ranks"] == 3 and look.incidents[0]["look"]["logs"], "the rest"
    assert {0, 2} <= {stack["rank"] for stack in look.incidents[0]["stacks"]}, look.text
