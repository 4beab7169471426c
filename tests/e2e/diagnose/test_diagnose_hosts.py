# SPDX-License-Identifier: Apache-2.0
"""`rollcall diagnose` of other hosts: through a real sshd on loopback, and through stand-ins for kubectl that run
what they are given in this machine's own shell. Hundreds of hosts: tests/unit/cli/diagnose/elsewhere_test.cc. A real
Slurm: tests/slurm/test_diagnose.py."""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys

import pytest
from conftest import ROLLCALL
from diagnosed_job import CANNOT_TELL, HANG, NOTHING
from processes import free_port, wait_for

CLONE = pathlib.Path(__file__).parents[3]

# Ranks that meet by sockets: by one that never answers, or, with "steps", again and again.
RANKS = """
import os, socket, sys, time
a, b = socket.socketpair()
print(os.getpid(), flush=True)
while "steps" in sys.argv:
    b.send(b"x")
    a.recv(1)
    sum(range(200_000))
    time.sleep(0.02)
a.recv(1)
"""

SSHD_CONFIG = """
Port {port}
ListenAddress 127.0.0.1
HostKey {folder}/host_key
AuthorizedKeysFile {folder}/user_key.pub
PidFile none
UsePAM no
StrictModes no
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin yes
SetEnv TMPDIR={folder}/there
"""

SSH_CONFIG = """
Host gone
  Port {closed}
Host *
  HostName 127.0.0.1
  Port {port}
  IdentityFile {folder}/user_key
  IdentitiesOnly yes
  UserKnownHostsFile {folder}/known_hosts
"""


class Job:
    """Three ranks that nobody prepared; their launcher is the test. Rank 1 is stopped."""

    def __init__(self, *arguments):
        port = free_port()
        self.name = f"far-away-{port}"
        self.ranks = []
        for rank in range(3):
            self.ranks.append(subprocess.Popen(
                [sys.executable, "-c", RANKS, *arguments], stdout=subprocess.PIPE, text=True,
                env={**os.environ, "RANK": str(rank), "WORLD_SIZE": "3", "MASTER_ADDR": "127.0.0.1",
                     "MASTER_PORT": str(port), "ROLLCALL_JOB": self.name}))
            assert self.ranks[-1].stdout.readline().strip().isdigit()
        if not arguments:
            self.ranks[1].send_signal(signal.SIGSTOP)

    def end(self):
        for process in self.ranks:
            process.kill()
            process.wait()


@pytest.fixture
def job():
    made = Job()
    yield made
    made.end()


def program(folder, name, text):
    """A program of this name on the path of `diagnose`."""
    path = folder / "bin" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


def diagnose(folder, *arguments, seconds=90):
    return subprocess.run([str(ROLLCALL), "diagnose", *arguments], capture_output=True, text=True, timeout=seconds,
                          env={**os.environ, "PATH": f"{folder / 'bin'}:{os.environ['PATH']}"}, check=False)


# As root, sshd wants a user and a folder of its own: they are there for it alone.
AS_ROOT = """
mount --make-rprivate / && mount -t tmpfs -o mode=0755 tmpfs /run && mkdir /run/sshd
(cat /etc/passwd; echo sshd:x:65533:65534::/run/sshd:/usr/sbin/nologin) >/run/passwd
mount --bind /run/passwd /etc/passwd && exec "$@"
"""


@pytest.fixture(scope="module")
def sshd_program():
    made = subprocess.run([CLONE / "deploy" / "setup_parts.sh", "ssh"], capture_output=True, text=True, check=False)
    if made.returncode != 0:
        pytest.skip(made.stderr.strip())
    return CLONE / "build" / "ssh" / "usr" / "sbin" / "sshd"


@pytest.fixture
def sshd(sshd_program, tmp_path):
    """`ssh HOST` reaches a real sshd of this machine with keys of its own. -> the folder of temporary files there"""
    for key in ("host_key", "user_key"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", tmp_path / key], check=True)
    there = tmp_path / "there"
    there.mkdir()
    port = free_port()
    host_key = " ".join((tmp_path / "host_key.pub").read_text().split()[:2])
    (tmp_path / "known_hosts").write_text(f"[127.0.0.1]:{port} {host_key}\n")
    (tmp_path / "sshd_config").write_text(SSHD_CONFIG.format(port=port, folder=tmp_path))
    (tmp_path / "ssh_config").write_text(SSH_CONFIG.format(port=port, closed=free_port(), folder=tmp_path))
    program(tmp_path, "ssh", f'#!/bin/sh\nexec {shutil.which("ssh")} -F {tmp_path}/ssh_config "$@"\n')
    command = [sshd_program, "-D", "-e", "-f", tmp_path / "sshd_config"]
    if os.geteuid() == 0:
        command = ["unshare", "--mount", "sh", "-c", AS_ROOT, "sh", *command]
    libraries = ":".join(str(path) for path in (CLONE / "build" / "ssh").glob("usr/lib/*-linux-gnu*"))
    log = tmp_path / "sshd.log"
    with open(log, "wb") as errors:
        server = subprocess.Popen(command, stderr=errors, env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
                                                               "LD_LIBRARY_PATH": libraries})
    wait_for(lambda: b"Server listening" in log.read_bytes())
    yield there
    server.terminate()
    server.wait(timeout=120)


def test_a_job_behind_ssh_is_explained_without_anything_installed_there(job, sshd, tmp_path):
    done = diagnose(tmp_path, "--hosts=here,gone", "--format=json", "--samples-apart=2s", job.name)
    assert done.returncode == HANG, done.stdout + done.stderr
    [culprit] = json.loads(done.stdout)["verdicts"][0]["culprits"]
    assert culprit["rank"] == 1
    assert culprit["pid"] == job.ranks[1].pid
    assert list(sshd.iterdir()) == []  # what was copied there is gone


def test_a_host_that_does_not_answer_is_named(job, sshd, tmp_path):
    done = diagnose(tmp_path, "--hosts=here,gone", "--samples-apart=2s", job.name)
    assert done.returncode == HANG, done.stdout + done.stderr
    assert "gone: ssh: connect to host 127.0.0.1" in done.stdout
    assert "Connection refused" in done.stdout
    assert f"rollcall diagnose --hosts=here,gone {job.name} --report-dir=" in done.stdout


@pytest.mark.long
def test_an_installed_program_of_the_same_version_is_used(job, tmp_path):
    marks = tmp_path / "marks"
    program(tmp_path, "rollcall", f'#!/bin/sh\necho "$1" >>{marks}\nexec {ROLLCALL} "$@"\n')
    program(tmp_path, "ssh", '#!/bin/sh\nwhile [ "$1" != -- ]; do shift; done\nexec sh -c "$3"\n')
    done = diagnose(tmp_path, "--hosts=here", "--samples-apart=2s", job.name)
    assert done.returncode == HANG, done.stdout + done.stderr
    assert marks.read_text().split() == ["--version", "diagnose"]


# 65 hosts are more than are looked at at a time. One of them is this machine, and nothing runs on the others.
ONE_OF_MANY = r"""#!/bin/sh
while [ "$1" != -- ]; do shift; done
[ "$2" != real ] || exec sh -c "$3"
printf 'rollcall-look %s 3\n\012\001x' "$(printf '%s' "$3" | sed -n 's/.*--look=\([0-9a-f]*\).*/\1/p')"
"""


@pytest.mark.long
@pytest.mark.parametrize("arguments, code", [((), HANG), (("steps",), NOTHING)])
def test_hosts_that_cannot_be_looked_at_at_once_are_looked_at_twice(tmp_path, arguments, code):
    program(tmp_path, "ssh", ONE_OF_MANY)
    job = Job(*arguments)
    try:
        done = diagnose(tmp_path, "--hosts=real," + ",".join(f"node-{i}" for i in range(64)), job.name)
        assert done.returncode == code, done.stdout + done.stderr
        assert ("rank 1" in done.stdout) == (code == HANG)
    finally:
        job.end()


def test_hosts_that_all_fail_give_no_verdict(tmp_path):
    program(tmp_path, "ssh", "#!/bin/sh\necho 'no route' >&2\nexit 255\n")
    done = diagnose(tmp_path, "--hosts=a,b")
    assert done.returncode == CANNOT_TELL
    assert "no route" in done.stdout + done.stderr


PODS = {"items": [
    {"metadata": {"name": f"train-{number}", "namespace": "ml"},
     "spec": {"nodeName": "node-1", "containers": [
         {"name": "proxy"}, {"name": "job", "resources": {"limits": {"nvidia.com/gpu": "1"}}}]},
     "status": {"phase": "Running" if number == 0 else "Pending"}} for number in range(2)]}

# As kubectl: `get pods` lists them, `exec` runs the command of the pod.
KUBECTL = """#!/bin/sh
echo "$@" >>{folder}/asked
case $1 in
  get) cat {folder}/pods.json ;;
  exec) while [ "$1" != -- ]; do shift; done; shift; exec "$@" ;;
esac
"""


def test_a_job_in_pods_of_kubernetes_is_explained(job, tmp_path):
    (tmp_path / "pods.json").write_text(json.dumps(PODS))
    program(tmp_path, "kubectl", KUBECTL.format(folder=tmp_path))
    done = diagnose(tmp_path, "--kubernetes=ml/app=train", "--samples-apart=2s", job.name)
    assert done.returncode == HANG, done.stdout + done.stderr
    assert "train-0" in done.stdout
    assert "train-1: the pod does not run: Pending" in done.stdout
    asked = (tmp_path / "asked").read_text()
    assert "get pods --namespace=ml --selector=app=train --output=json" in asked
    assert "exec --stdin --namespace=ml --container=job train-0 -- /bin/sh -c" in asked
    assert "train-1" not in asked.split("exec", 1)[1].split("/bin/sh")[0]


@pytest.mark.parametrize("arguments, words", [
    (("--hosts=-oProxyCommand=x",), "is not the name of a host"),
    (("--hosts=a", "--slurm=7"), "excludes"),
    (("--slurm=--all",), "give the number of a job"),
    (("--kubernetes=ml",), "a selector of labels"),
    (("--hosts=a", str(os.getpid())), "process numbers are of one host"),
    (("--look=x",), "needs a token"),
])
def test_what_makes_no_sense_is_refused(arguments, words, tmp_path):
    done = diagnose(tmp_path, *arguments)
    assert done.returncode in (1, 2)
    assert words in done.stderr
