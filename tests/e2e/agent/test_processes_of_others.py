# SPDX-License-Identifier: Apache-2.0
"""Where /proc shows less than usual, or a pid is given again."""
import os
import subprocess
import sys

import pytest
from conftest import AS_NOBODY, ROLLCALL, VICTIMS, can_be_others, let_everybody_pass_to

HUNG = ["--", VICTIMS / "ranks", "-n", "4", "--", VICTIMS / "one_rank_stops_calling"]


def run_of(folder):
    return [ROLLCALL, "run", "--sim", "--hang-after=3s", "--on-hang=abort", "--http=none", f"--report-dir={folder}"]


@pytest.mark.long
def test_a_user_who_sees_no_process_of_others_gets_the_same_verdict(tmp_path):
    if not can_be_others():
        pytest.skip("needs root, to remount /proc and to become another user")
    let_everybody_pass_to(tmp_path)
    os.chmod(tmp_path, 0o777)
    # A /proc of its own: a remount would change that of the whole machine.
    hide = 'mount -t proc -o hidepid=2 proc /proc; exec "$@"'
    done = subprocess.run(["unshare", "--mount", "--pid", "--fork", "--propagation=private", "sh", "-ec", hide, "sh",
                           *AS_NOBODY, *run_of(tmp_path / "reports"), *HUNG], capture_output=True, text=True,
                          timeout=120, cwd=tmp_path)
    assert "hidepid" not in next(line for line in open("/proc/self/mountinfo") if " /proc " in line)
    assert done.returncode == 75, done.stderr
    assert "rank 3" in done.stderr and "`Validate`" in done.stderr
    assert "certainty: certain" in done.stderr or "tasks wait for a CPU" in done.stderr


# In a pid namespace of its own, where the test chooses the next pid.
TAKE_PID = """
import os, subprocess, sys, time

def ranks():
    found = set()
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if "one_rank_dies" in open(f"/proc/{pid}/cmdline").read().split("\\0")[0]:
                found.add(int(pid))
        except OSError:
            pass
    return found

run = subprocess.Popen(sys.argv[1:])
known = set()
while not (len(known) == 4 and known - ranks()):
    known |= ranks()
    time.sleep(0.02)
gone = (known - ranks()).pop()
for _ in range(1000):
    open("/proc/sys/kernel/ns_last_pid", "w").write(str(gone - 1))
    other = subprocess.Popen(["sleep", "60"])
    if other.pid == gone:
        break
    other.kill()
    other.wait()
    time.sleep(0.01)
print("taken" if other.pid == gone else "not taken", gone, flush=True)
code = run.wait()
other.kill()
sys.exit(code)
"""


@pytest.mark.long
def test_a_rank_whose_pid_another_process_has_got_is_still_known_as_dead(tmp_path):
    own = ["unshare", "--pid", "--fork", "--mount-proc"]
    if subprocess.run([*own, "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("no pid namespace")
    done = subprocess.run([*own, sys.executable, "-c", TAKE_PID, *run_of(tmp_path), "--", VICTIMS / "ranks", "-n", "4",
                           "--keep-going", "--", VICTIMS / "one_rank_dies"],
                          capture_output=True, text=True, timeout=120)
    assert done.returncode == 75, done.stderr
    taken = [line.split() for line in done.stdout.splitlines() if line.startswith("taken ")]
    assert taken, done.stdout  # the pid was given again
    assert f"pid {taken[0][1]}) died (killed by signal 9)" in done.stderr
