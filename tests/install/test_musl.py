# SPDX-License-Identifier: Apache-2.0
"""The static programs and the library where there is musl and no glibc, as in images of Alpine: a root folder
with musl's loader, busybox, and what the tgz holds."""
import json
import os
import pathlib
import shutil
import subprocess
import tarfile

import pytest

PACKAGES = pathlib.Path(os.environ["ROLLCALL_PACKAGES"])
MACHINE = os.uname().machine
LOADER = pathlib.Path(f"/lib/ld-musl-{MACHINE}.so.1")
# A program with threads and with what the library puts itself in front of; ends with 7 if all is as it was.
PROGRAM = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static void* run(void* argument) { return argument; }

int main(void) {
  pthread_t thread;
  void* result = 0;
  if (pthread_create(&thread, 0, run, &result) != 0) return 1;
  pthread_join(thread, &result);
  pid_t child = fork();
  int status = 0;
  if (child == 0) _exit(3);
  waitpid(child, &status, 0);
  void* found = dlsym(RTLD_DEFAULT, "puts");
  puts("it runs");
  return result && found && WEXITSTATUS(status) == 3 ? 7 : 2;
}
"""

pytestmark = [pytest.mark.long, pytest.mark.skipif(os.geteuid() != 0, reason="a root folder of its own needs root")]


def run(*command, **options):
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=180,
                          **options)


@pytest.fixture(scope="module")
def alpine(tmp_path_factory):
    """A function that runs a shell command in the root folder."""
    busybox = shutil.which("busybox")
    if not LOADER.exists() or shutil.which("musl-gcc") is None or busybox is None:
        pytest.skip("this needs musl and busybox; to have them:  apt-get install musl-tools busybox-static")
    root = tmp_path_factory.mktemp("alpine") / "root"
    for folder in ("bin", "lib", "proc", "dev/shm", "tmp", "opt"):
        (root / folder).mkdir(parents=True)
    (root / "dev" / "null").touch()
    shutil.copy(LOADER.resolve(), root / "lib" / LOADER.name)
    shutil.copy(busybox, root / "bin" / "busybox")
    (root / "bin" / "sh").symlink_to("busybox")
    archive, = PACKAGES.glob(f"*-{MACHINE}.tgz")
    with tarfile.open(archive) as packed:
        packed.extractall(root / "opt")
    next((root / "opt").glob("rollcall-*")).rename(root / "opt" / "rollcall")
    source = root / "tmp" / "program.c"
    source.write_text(PROGRAM)
    subprocess.run(["musl-gcc", "-o", root / "bin" / "program", source, "-pthread"], check=True)

    def inside(command):
        script = (f"mount -t proc proc {root}/proc; mount -t tmpfs tmpfs {root}/dev/shm; "
                  f"mount --bind /dev/null {root}/dev/null; ip link set lo up; "
                  f'exec env -i PATH=/opt/rollcall/bin:/bin HOME=/tmp /usr/sbin/chroot {root} sh -c "$0"')
        return run("unshare", "--mount", "--pid", "--net", "--fork", "--kill-child", "bash", "-ec", script,
                   f"cd /tmp; {command}")

    assert not list((root / "lib").glob("libc.so*")) and not (root / "lib64").exists()
    return inside


def test_daemon_agent_and_command_line_speak_on_musl(alpine):
    result = alpine("""rollcalld --http=127.0.0.1:7656 > daemon.log 2>&1 &
rollcall-agent --daemon=127.0.0.1:7655 > agent.log 2>&1 &
for i in $(busybox seq 300); do
  busybox wget -q -O - http://127.0.0.1:7656/metrics 2> /dev/null |
    busybox grep -x "rollcall_agents_connected 1" && break
  busybox sleep 0.1
done
rollcall status --daemon=127.0.0.1:7655 && exit
busybox cat agent.log daemon.log >&2
exit 1""")
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith("rollcall_agents_connected 1\n"), result.stdout


def test_the_library_leaves_a_program_of_musl_as_it_is(alpine):
    alone = alpine("program")
    assert (alone.returncode, alone.stdout, alone.stderr) == (7, "it runs\n", "")
    preloaded = alpine("LD_PRELOAD=/opt/rollcall/lib/rollcall/librollcall.so program")
    assert (preloaded.returncode, preloaded.stdout, preloaded.stderr) == (7, "it runs\n", "")
    watched = alpine("rollcall run --http=none -- program")
    assert (watched.returncode, watched.stdout) == (7, "it runs\n"), watched.stderr


def test_doctor_says_that_the_library_records_nothing_there(alpine):
    result = alpine("rollcall doctor --format=json -- program")
    checks = {check["id"]: check for check in json.loads(result.stdout)["checks"]}
    assert checks["program"]["state"] == "problem" and "uses musl" in checks["program"]["what"]
    assert result.returncode == 3
