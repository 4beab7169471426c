# SPDX-License-Identifier: Apache-2.0
"""A real Slurm of two nodes on this machine: munged, slurmctld and two slurmd.

All of it lives in pid and mount namespaces of its own, with its own /etc/slurm, /run, /tmp and
/dev/shm. So it touches nothing of this machine, and the end of the first process ends everything."""
import os
import pathlib
import re
import shutil
import socket
import subprocess
import time

from processes import free_ports

BUILD = pathlib.Path(os.environ["ROLLCALL_BUILD"])
ROOT = pathlib.Path(__file__).resolve().parents[2]
SLURM = ROOT / "deploy" / "slurm"
USER = 65534  # nobody
# A folder with another userland, whose Slurm is tried instead, and Rollcall's programs that run there
# (static ones: build/portable/bin).
USERLAND = os.environ.get("ROLLCALL_SLURM_ROOT", "")
PROGRAMS = pathlib.Path(os.environ.get("ROLLCALL_SLURM_PROGRAMS", BUILD / "bin"))

NEEDED = ["munged", "slurmctld", "slurmd", "srun", "scontrol"]
MOUNT_POINTS = [pathlib.Path(USERLAND + path) for path in ("/usr/lib/rollcall", "/etc/slurm")]


def why_not():
    """Why no cluster can run here; "" if one can."""
    path = ":".join(USERLAND + folder for folder in ("/usr/sbin", "/usr/bin", "/sbin", "/bin"))
    missing = [name for name in NEEDED if shutil.which(name, path=path) is None]
    if missing:
        return f"needs {', '.join(missing)}: deploy/setup_parts.sh slurm"
    if os.geteuid() != 0:
        return "needs root, for pid and mount namespaces and the users of jobs"
    can = subprocess.run(["unshare", "--pid", "--mount", "--fork", "--mount-proc", "true"],
                         capture_output=True)
    return "" if can.returncode == 0 else "this system permits no pid and mount namespaces"


CONFIG = """\
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmUser=root
AuthInfo=cred_expire=5
MpiDefault=none
ProctrackType=proctrack/{proctrack}
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerParameters=sched_interval=1,bf_interval=1,batch_sched_delay=0
StateSaveLocation=/run/slurm/state
SlurmdSpoolDir=/run/slurm/spool-%n
SlurmctldPidFile=/run/slurm/slurmctld.pid
SlurmdPidFile=/run/slurm/slurmd-%n.pid
ReturnToService=1
KillWait=2
MinJobAge=600
SlurmdParameters=config_overrides
MailProg=/bin/true
PrologFlags={prolog_flags}
{extra}
NodeName=n1 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[1]} CPUs=4 State=UNKNOWN
NodeName=n2 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[2]} CPUs=4 State=UNKNOWN
PartitionName=usual Nodes=n1,n2 Default=YES State=UP OverSubscribe=NO
PartitionName=requeues Nodes=n1,n2 State=UP OverSubscribe=NO
PartitionName=drains Nodes=n1,n2 State=UP OverSubscribe=NO
"""

# The first process of the cluster: prepares the mounts, says so, and waits.
INIT = """
set -e
root={root}
mount --make-rprivate /
if [ -n "$root" ]; then
  mount --bind "$root" "$root"
  mount --rbind /dev "$root/dev"
  mount --rbind /sys "$root/sys"
  mount -t proc proc "$root/proc"
fi
mkdir -p "$root/etc/slurm" "$root/usr/lib/rollcall"
mount --bind {etc} "$root/etc/slurm"
mount -t tmpfs -o mode=0755 tmpfs "$root/usr/lib/rollcall"
cp -r {lib}/. "$root/usr/lib/rollcall/"
mount -t tmpfs -o mode=0755 tmpfs "$root/run"
mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm"
mount --bind {jobs} "$root/mnt"
mount --bind {tmp} "$root/tmp"
if [ -n "$root" ]; then
  mkdir "$root/run/old"
  cd "$root"
  pivot_root . run/old
  umount --lazy /run/old
fi
mkdir -p /run/munge /run/slurm/state /run/slurm/spool-n1 /run/slurm/spool-n2 /run/slurm/munge
chown munge /run/munge /run/slurm/munge && chmod 0700 /run/slurm/munge
echo up
while :; do sleep 3600 & wait $!; done  # reaps what others leave behind
"""


class Cluster:
    def __init__(self, folder, plugstack="", extra="", proctrack="pgid", prolog_flags="Alloc", files=()):
        """plugstack: lines of plugstack.conf; extra: lines of slurm.conf; files: (name, text) in
        /etc/slurm, programs with the mode 0755."""
        self.folder = folder
        self.tmp, etc = folder / "tmp", folder / "etc"
        self.lib, self.jobs = folder / "lib", folder / "jobs"
        self.processes = []
        for path in (self.tmp, etc, self.lib, self.jobs):
            path.mkdir()
        self.made = [path for path in MOUNT_POINTS if not path.exists()]
        self.tmp.chmod(0o1777)
        os.chown(self.jobs, USER, USER)
        self.install()
        host = socket.gethostname().split(".")[0]
        *ports, self.daemon_port = free_ports(4)
        (etc / "slurm.conf").write_text(CONFIG.format(
            host=host, ports=ports, extra=extra, proctrack=proctrack, prolog_flags=prolog_flags))
        (etc / "plugstack.conf").write_text(plugstack.format(daemon=f"127.0.0.1:{self.daemon_port}"))
        for name, text in files:
            (etc / name).write_text(text)
            (etc / name).chmod(0o755)
        self.etc = etc
        self.init = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL",  # tests that are killed leave nothing
             "unshare", "--pid", "--mount", "--fork", "--mount-proc", "--kill-child", "--", "sh", "-c",
             INIT.format(root=USERLAND, etc=etc, lib=self.lib, tmp=self.tmp, jobs=self.jobs)],
            stdout=subprocess.PIPE, text=True)
        assert self.init.stdout.readline() == "up\n"
        children = f"/proc/{self.init.pid}/task/{self.init.pid}/children"
        self.inside = pathlib.Path(children).read_text().split()[0]
        try:
            self.boot()
        except BaseException:
            self.end()
            raise

    def install(self):
        """What the packages put into /usr/lib/rollcall, and the programs of the tests, which the
        user of the jobs could not read in the build folder."""
        shutil.copy(BUILD / "lib" / "librollcall.so", self.lib)
        shutil.copytree(SLURM, self.lib / "slurm")
        (self.lib / "bin").mkdir()
        for name in ("rollcall", "rollcalld", "rollcall-agent", "rollcall-probe", "rollcall-probe-nvml"):
            shutil.copy(PROGRAMS / name, self.lib / "bin")
        shutil.copytree(BUILD / "sim", self.lib / "sim")
        (self.lib / "lib").symlink_to(".")  # rollcall looks there from its folder, bin
        (self.lib / "tests").mkdir()
        for name in ("one_rank_stops_calling", "healthy_mix"):
            shutil.copy(BUILD / "tests" / name, self.lib / "tests")

    def command(self, *arguments, user=0):
        who = [] if user == 0 else ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups"]
        there = ["sh", "-c", 'cd /tmp && exec "$@"', "sh"]
        return ["nsenter", f"--target={self.inside}", "--pid", "--mount", "--", *there, *who, *arguments]

    def start(self, *arguments, user=0, env=None, log=None):
        """A process of the cluster that runs until the end."""
        out = open(self.folder / f"{log or pathlib.Path(arguments[0]).name}.log", "ab")
        process = subprocess.Popen(self.command(*arguments, user=user), stdin=subprocess.DEVNULL, stdout=out,
                                   stderr=subprocess.STDOUT, env={**plain_environment(), **(env or {})})
        out.close()
        self.processes.append(process)
        return process

    def run(self, *arguments, user=0, env=None, timeout=120, check=True):
        done = subprocess.run(self.command(*arguments, user=user), capture_output=True, text=True,
                              stdin=subprocess.DEVNULL, env={**plain_environment(), **(env or {})},
                              timeout=timeout)
        assert not check or done.returncode == 0, f"{arguments}\n{done.stdout}{done.stderr}\n{self.logs()}"
        return done

    def boot(self):
        self.run("/usr/lib/rollcall/slurm/build.sh")
        self.run("sh", "-c", "head -c 128 /dev/urandom > /run/slurm/munge/key && "
                 "chown munge /run/slurm/munge/key && chmod 0400 /run/slurm/munge/key")
        self.start("setpriv", "--reuid=munge", "--regid=munge", "--clear-groups", "munged", "--foreground",
                   "--key-file=/run/slurm/munge/key", "--pid-file=/run/munge/munged.pid",
                   "--log-file=/run/slurm/munge/log", "--seed-file=/run/slurm/munge/seed", log="munged")
        self.wait(lambda: self.run("test", "-S", "/run/munge/munge.socket.2", check=False).returncode == 0)
        self.start("slurmctld", "-D", log="slurmctld")
        for node in ("n1", "n2"):
            self.start_node(node)
        self.wait(lambda: self.states() == {"n1": "idle", "n2": "idle"})

    def start_node(self, node):
        return self.start("slurmd", "-D", "-N", node, log=f"slurmd-{node}")

    def states(self):
        """The state of each node, as sinfo writes it: "idle", "idle*" does not answer, "drained"."""
        shown = self.run("sinfo", "-h", "-N", "-p", "usual", "-o", "%N %T", check=False).stdout
        return dict(line.split() for line in shown.splitlines())

    def job(self, number):
        """What scontrol knows of the job, as a dictionary."""
        text = self.run("scontrol", "--oneliner", "show", "job", str(number)).stdout.strip()
        return dict(re.findall(r"(?:^| )([A-Za-z:/_]+)=(.*?)(?= [A-Za-z:/_]+=|$)", text))

    def submit(self, script, *flags, name="train", env=None):
        """A batch job of the user nobody; its folder is /mnt, here self.jobs. -> its number"""
        file = self.jobs / "script.sh"
        file.write_text(f"#!/bin/bash\n{script}\n")
        done = self.run("sbatch", "--parsable", f"--job-name={name}", "--chdir=/mnt", *flags,
                        "/mnt/script.sh", user=USER, env=env)
        return int(done.stdout.split(";")[0])

    def output(self, number):
        """What the job, or "ARRAY_TASK", has written so far."""
        path = self.jobs / f"slurm-{number}.out"
        return path.read_text(errors="replace") if path.exists() else ""

    def run_job(self, script, *flags, **options):
        """A batch job that ends well. -> what it has written"""
        number = self.submit(script, *flags, **options)
        self.wait_for_end(number)
        assert self.job(number)["JobState"] == "COMPLETED", f"{self.job(number)}\n{self.output(number)}"
        return self.output(number)

    def wait_for_end(self, number):
        self.wait_for_state(number, "COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL")

    def set_plugstack(self, text):
        """slurmstepd and srun read the file at each start."""
        (self.etc / "plugstack.conf").write_text(text.format(daemon=f"127.0.0.1:{self.daemon_port}"))

    def wait_for_state(self, number, *states):
        self.wait(lambda: self.job(number)["JobState"] in states,
                  tell=lambda: f"{self.job(number)}\n{self.output(number)}")

    def wait(self, condition, seconds=120, tell=lambda: ""):
        deadline = time.monotonic() + seconds
        while not (found := condition()):
            assert time.monotonic() < deadline, f"not within {seconds} s\n{tell()}\n{self.logs()}"
            time.sleep(0.1)
        return found

    def logs(self):
        logs = sorted(self.folder.glob("*.log"))
        return "\n".join(f"--- {path.name}\n" + "\n".join(path.read_text(errors="replace").splitlines()[-30:])
                         for path in logs)

    def end(self):
        if self.init.poll() is not None:
            return
        self.init.kill()  # and with it everything in its pid namespace
        self.init.wait(timeout=120)
        for process in self.processes:
            process.wait(timeout=120)
        for path in self.made:
            if path.exists() and not any(path.iterdir()):
                path.rmdir()


def plain_environment():
    """Without what the shell of the tests has set for Slurm or Rollcall."""
    return {name: value for name, value in os.environ.items()
            if not name.startswith(("SLURM", "SBATCH", "ROLLCALL", "LD_"))}
