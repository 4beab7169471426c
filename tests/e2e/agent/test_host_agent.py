# SPDX-License-Identifier: Apache-2.0
"""An agent of its own that serves the whole host: jobs of other users, in pid, mount and time
namespaces, with a /dev/shm of their own. As the packages run it: not root, two capabilities.

All processes of a test live in a pid namespace of the test's own, which is "the host": so the agent
does not see the other jobs of the machine."""
import fcntl
import json
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile
import time
import urllib.request

import pytest
from conftest import (
    AS_NOBODY,
    BUILD,
    CLONE,
    PATIENCE,
    Service,
    ask,
    can_be_others,
    find_communicator,
    long,
    reports_in,
    stepped_clock,
    wait_for,
)

LIBRARY = BUILD / "lib" / "librollcall.so"
AGENT = BUILD / "bin" / "rollcall-agent"
RANKS = BUILD / "tests" / "ranks"
VICTIMS = BUILD / "tests"
CAPABILITIES = ["--inh-caps=-all,+sys_ptrace,+dac_read_search",
                "--ambient-caps=-all,+sys_ptrace,+dac_read_search"]
# The clone stays where it is, also below /tmp: mount(8) takes it by the working directory.
MOUNT_TMP = (f"cd '{CLONE}' && mount -t tmpfs -o mode=1777 tmpfs /tmp && mkdir -p '{CLONE}' && "
             f"mount --no-canonicalize --bind . '{CLONE}'")
CONTAINER = ["unshare", "--pid", "--mount", "--fork", "--mount-proc", "--kill-child", "--", "sh",
             "-c", "mount -t tmpfs -o size=64m,mode=1777 tmpfs /dev/shm && "
             f"{MOUNT_TMP} && exec \"$@\"", "sh"]

OWN_TMP = ["unshare", "--mount", "--", "sh", "-c", f"{MOUNT_TMP} && exec \"$@\"", "sh"]


def can_unshare():
    return subprocess.run(["unshare", "--pid", "--mount", "--fork", "--mount-proc", "true"],
                          capture_output=True).returncode == 0


pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 or not can_unshare(),
    reason="needs root and the right to make pid and mount namespaces")


class Host:
    """A pid namespace whose first process does nothing. Tests start programs inside it."""

    def __init__(self, folder):
        self.folder = folder
        self.init = subprocess.Popen(
            ["unshare", "--pid", "--mount", "--fork", "--mount-proc", "--kill-child", "--", "sh",
             "-c", "echo up; exec sleep 1000"], stdout=subprocess.PIPE, text=True)
        assert self.init.stdout.readline() == "up\n"
        children = f"/proc/{self.init.pid}/task/{self.init.pid}/children"
        self.inside = pathlib.Path(children).read_text().split()[0]
        self.services = []
        self.tokens, self.secret = folder / "tokens", folder / "token"
        made = subprocess.run([BUILD / "bin" / "rollcall", "token", "new", f"--file={self.tokens}",
                               "--name=agent", "--role=agent", "--host=the-host"],
                              capture_output=True, text=True, check=True)
        self.secret.write_text(made.stdout)
        self.secret.chmod(0o600)
        if can_be_others():
            os.chown(self.secret, 65534, 65534)

    def command(self, *arguments):
        return ["nsenter", f"--target={self.inside}", "--pid", "--mount", "--", *arguments]

    def start(self, *arguments, env=None):
        service = Service(self.command(*arguments), env=env)
        self.services.append(service)
        return service

    def agent(self, daemon, *flags, privileges=(*AS_NOBODY, *CAPABILITIES), env=None):
        directory = self.folder / "agent"
        directory.mkdir(exist_ok=True)
        if privileges:
            if not can_be_others():
                pytest.skip("root is the only user of this user namespace")
            os.chown(directory, 65534, 65534)
            # The daemon knows its own user by the connection, and others by a token.
            flags = (*flags, f"--token-file={self.secret}")
        return self.start(*privileges, AGENT, f"--daemon={daemon.address}", f"--dir={directory}",
                          "--host=the-host", *flags, env=env)

    def job(self, victim, *wrappers, name="a-job", ranks=4, env=None):
        return self.start(*wrappers, "env", f"LD_PRELOAD={LIBRARY}",
                          f"LD_LIBRARY_PATH={BUILD / 'sim'}", f"ROLLCALL_JOB={name}",
                          RANKS, "-n", str(ranks), "--keep-going", "--",
                          VICTIMS / victim, env=env)

    def find_pids(self, program):
        """The host's pids of processes with this name. Does not use pgrep, which also reads command
        lines and can block."""
        listing = subprocess.run(self.command("sh", "-c", "grep -s . /proc/[0-9]*/comm"),
                                 capture_output=True, text=True).stdout
        lines = (line.split(":", 1) for line in listing.splitlines())
        return sorted(int(path.split("/")[2]) for path, name in lines if name == program[:15])

    def send(self, signal_name, program):
        pids = [str(pid) for pid in self.find_pids(program)]
        subprocess.run(self.command("kill", f"-{signal_name}", *pids), check=True)

    def end(self):
        for service in self.services:
            if service.process.poll() is None:
                service.process.kill()
        self.init.kill()
        self.init.wait(timeout=120)
        for service in self.services:
            service.process.wait(timeout=120)


@pytest.fixture
def host():
    folder = pathlib.Path(tempfile.mkdtemp(prefix="rollcall-host-", dir="/tmp"))
    folder.chmod(0o755)
    made = Host(folder)
    yield made
    made.end()
    shutil.rmtree(folder)


@pytest.fixture
def daemon(start_daemon, host):
    return start_daemon(f"--token-file={host.tokens}")


def rollcall(daemon, *arguments):
    return subprocess.run([BUILD / "bin" / "rollcall", *arguments],
                          env={**os.environ, "ROLLCALL_DAEMON": daemon.address},
                          capture_output=True, text=True, timeout=120)


def wait_for_status(daemon, text, seconds=PATIENCE):
    deadline = time.monotonic() + seconds
    status = ""
    while time.monotonic() < deadline:
        status = rollcall(daemon, "status", "--all").stdout
        if text in status:
            return status
        time.sleep(0.2)
    raise AssertionError(f"{text!r} never came:\n{status}")


def wait_for_end(daemon):
    """Waits until the daemon knows that its only job has ended, and has judged the end."""
    wait_for(lambda: [job["state"] for job in ask(daemon, "status")["jobs"]] == ["ended"])
    time.sleep(1)  # a verdict and its report would come now


def no_reports(tmp_path):
    return not reports_in(tmp_path / "daemon-reports")


def wait_for_report(tmp_path):
    """The verdict of the only report."""
    report, = wait_for(lambda: reports_in(tmp_path / "daemon-reports"))
    return json.loads((report / "incident.json").read_text())["verdicts"][0]


def test_the_agent_explains_a_hang_in_another_users_container_with_stacks(host, daemon, tmp_path):
    agent = host.agent(daemon)
    job = host.job("one_rank_stops_calling", *CONTAINER, "setpriv", "--reuid=1234", "--regid=1234",
                   "--clear-groups", env={"NODE_NAME": "victim-node"})
    wait_for_status(daemon, "a-job: hung")
    verdict = wait_for_report(tmp_path)
    assert verdict["cause"] == "missing_rank"
    assert [culprit["rank"] for culprit in verdict["culprits"]] == [3]
    culprit = verdict["culprits"][0]
    assert culprit["host"] == "the-host"
    assert culprit["pid"] in host.find_pids("one_rank_stops_calling")
    # What others may act on is the kernel's word, not the job's.
    assert culprit["uid"] == 1234
    assert culprit["node"] == "", "NODE_NAME is another user's"
    stacks = rollcall(daemon, "stacks", "--rank=3", "--each", "a-job").stdout
    assert "Validate()" in stacks, stacks
    assert agent.process.poll() is None and job.process.poll() is None


@pytest.mark.long
def test_another_user_who_writes_anything_into_his_segment_harms_nobody(host, daemon):
    theirs = host.folder / "theirs"
    theirs.mkdir()
    os.chown(theirs, 1234, 1234)
    agent = host.agent(daemon)
    writer = host.start("setpriv", "--reuid=1234", "--regid=1234", "--clear-groups", "nice", "-n", "15",
                        BUILD / "fuzz" / "hostile_segment", theirs, "1")
    host.job("one_rank_stops_calling")
    wait_for_status(daemon, "a-job: hung")
    others = wait_for(lambda: {job["name"] for job in ask(daemon, "status")["jobs"]} - {"a-job"})
    assert others, "the agent has read what he writes"
    time.sleep(20)
    incident, = (i["id"] for i in ask(daemon, "incidents")["incidents"] if i["job"] == "a-job")
    verdict = ask(daemon, f"incident?id={incident}")["verdicts"][0]
    assert [culprit["rank"] for culprit in verdict["culprits"]] == [3]
    assert agent.process.poll() is None and daemon.process.poll() is None and writer.process.poll() is None


def test_the_agent_reports_no_death_of_a_slow_healthy_job_in_a_container(host, start_daemon, tmp_path):
    """A past fault: the agent took the job's pids for pids of its own namespace."""
    # The lag is not a hang, also if it is longer.
    daemon = start_daemon(f"--token-file={host.tokens}", "--hang-after=20s")
    host.agent(daemon)
    job = host.job("one_rank_lags", *CONTAINER, env={"LAG_SECONDS": "2"})
    wait_for_status(daemon, "a-job")
    assert job.process.wait(timeout=120) == 0
    wait_for_end(daemon)
    assert no_reports(tmp_path)


def shared_directory(host):
    shared = host.folder / "shared"
    shared.mkdir()
    return shared


def segments_in(directory):
    return sorted(path.name for path in directory.glob("*.seg"))


def start_sharing(host, shared, victim, **more):
    return host.job(victim, "unshare", "--pid", "--fork", "--mount-proc", "--kill-child", "--",
                    "env", f"ROLLCALL_DIR={shared}", **more)


def wait_for_segments(shared, count):
    wait_for(lambda: len(segments_in(shared)) == count)


@pytest.mark.long
def test_the_agent_deletes_only_ended_segments_of_another_pid_namespace(host, daemon, tmp_path):
    shared = shared_directory(host)
    host.start(AGENT, f"--daemon={daemon.address}", f"--dir={shared}", "--scope=directory",
               "--keep-ended=1")
    start_sharing(host, shared, "one_rank_stops_calling", ranks=2)
    wait_for_segments(shared, 2)
    status = wait_for_status(daemon, "a-job: hung")
    assert "died" not in status
    time.sleep(3)  # longer than --keep-ended
    assert len(segments_in(shared)) == 2
    host.send("KILL", "one_rank_stops_calling")
    wait_for_segments(shared, 0)


@pytest.mark.long
def test_an_agent_that_cannot_see_the_processes_reports_no_death(host, daemon, tmp_path):
    shared = shared_directory(host)
    beside = ["unshare", "--pid", "--mount", "--fork", "--mount-proc", "--kill-child", "--"]
    host.start(*beside, AGENT, f"--daemon={daemon.address}", f"--dir={shared}",
               "--scope=directory", "--keep-ended=1")
    job = start_sharing(host, shared, "one_rank_lags", ranks=2, env={"LAG_SECONDS": "2"})
    wait_for_segments(shared, 2)
    wait_for_status(daemon, "a-job")
    assert job.process.wait(timeout=120) == 0
    assert no_reports(tmp_path)
    wait_for_segments(shared, 0)  # their locks are free: they have ended


@pytest.mark.long
def test_waits_of_a_job_in_a_time_namespace_have_the_right_length(host, daemon, tmp_path):
    host.agent(daemon)
    begun = time.monotonic()
    host.job("one_rank_stops_calling", "unshare", "--time", "--monotonic=100000",
             "--boottime=100000", "--fork", "--kill-child", "--", *CONTAINER)
    wait_for_status(daemon, "a-job: hung")
    verdict = wait_for_report(tmp_path)
    assert 3 <= verdict["waited_seconds"] <= time.monotonic() - begun
    assert [culprit["rank"] for culprit in verdict["culprits"]] == [3]


def test_without_capabilities_the_agent_serves_its_own_user_and_says_so_once(host, daemon):
    agent = host.agent(daemon, privileges=AS_NOBODY)
    agent.read_until("serving only the processes of uid 65534: .* CAP_SYS_PTRACE")
    host.job("one_rank_stops_calling", name="of-root")
    host.job("one_rank_stops_calling", *OWN_TMP, *AS_NOBODY, name="its-own")
    status = wait_for_status(daemon, "its-own: hung")
    assert "of-root" not in status


def hold_lock(path):
    """Takes an OFD write lock on the first byte, as `rollcall run` does."""
    F_OFD_SETLK = 37
    fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.fcntl(fd, F_OFD_SETLK, struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 0, 1, 0))
    return fd


def test_the_agent_leaves_the_processes_of_a_live_run_alone(host, daemon):
    folder = host.folder / "run-1-2"
    folder.mkdir()
    lock = hold_lock(folder / "run.lock")
    host.agent(daemon)
    host.job("one_rank_stops_calling", name="of-a-run", env={"ROLLCALL_DIR": str(folder)})
    wait_for_segments(folder, 4)
    host.job("one_rank_stops_calling", name="of-nobody")
    assert "of-a-run" not in wait_for_status(daemon, "of-nobody: hung")
    os.close(lock)
    wait_for_status(daemon, "of-a-run: hung")


def test_the_agent_still_serves_an_unlinked_segment(host, daemon):
    """logind removes a user's shared memory in this way, and so does a Slurm epilog."""
    folder = host.folder / "segments"
    folder.mkdir()
    host.agent(daemon)
    host.job("one_rank_lags", env={"ROLLCALL_DIR": str(folder), "LAG_SECONDS": "1000"})
    wait_for_segments(folder, 4)
    wait_for_status(daemon, "a-job")
    for path in folder.glob("*.seg"):
        path.unlink()
    wait_for_status(daemon, "a-job: hung")


def blocks(path):
    """Whether a read of the file blocks."""
    reader = subprocess.Popen(["cat", path], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        reader.wait(timeout=1)
        return False
    except subprocess.TimeoutExpired:
        reader.kill()
        reader.wait(timeout=120)
        return True


@pytest.mark.parametrize("namespaces", [(), ("unshare", "--user", "--map-root-user", "--mount")],
                         ids=["", "in-a-user-namespace"])
def test_a_process_that_blocks_its_readers_delays_no_other(host, daemon, namespaces):
    agent = host.agent(daemon)
    mount = host.folder / "stuck"
    mount.mkdir()
    blocker = subprocess.Popen(
        host.command(*namespaces, "env", f"LD_PRELOAD={LIBRARY}", "RANK=0",
                     BUILD / "tests" / "blocks_its_readers", mount),
        stdout=subprocess.PIPE, text=True)
    try:
        if blocker.stdout.readline() != "ready\n":
            pytest.skip("no FUSE mounts are permitted here: nothing blocks")
        stuck = pathlib.Path(f"/proc/{blocker.pid}/task/{blocker.pid}/children").read_text()
        server = stuck.split()[0]
        child = pathlib.Path(f"/proc/{server}/task/{server}/children").read_text().split()[0]
        assert blocks(f"/proc/{child}/maps") or blocks(f"/proc/{child}/environ")
        agent.read_until("reads of its /proc files time out")
        host.job("one_rank_stops_calling")
        wait_for_status(daemon, "a-job: hung")
        begun = time.monotonic()
        host.send("TERM", "rollcall-agent")
        assert agent.process.wait(timeout=120) == 0
        assert time.monotonic() - begun < PATIENCE, "its end does not wait for that process either"
    finally:
        host.send("KILL", "blocks_its_readers")
        blocker.wait(timeout=120)


def is_lagging(daemon):
    """Whether all ranks wait for the last one."""
    comm = find_communicator(daemon)
    return comm and comm["waiting"] == 3


@pytest.mark.parametrize("step", [120, long(-120)])
def test_a_change_of_the_wall_clock_changes_no_wait(host, daemon, tmp_path, step):
    step_file = host.folder / "step"
    step_file.write_text("0")
    host.agent(daemon, "--scope=host", privileges=(), env=stepped_clock(step_file))
    job = host.job("one_rank_lags", name="healthy", env={"LAG_SECONDS": "2"})
    wait_for(lambda: is_lagging(daemon))
    step_file.write_text(str(step))
    assert job.process.wait(timeout=120) == 0
    wait_for_end(daemon)
    assert no_reports(tmp_path)
    host.job("one_rank_stops_calling", name="hanging")
    wait_for_status(daemon, "hanging: hung")


@pytest.mark.long
def test_waits_begin_anew_after_a_stop_of_the_agent(host, daemon, tmp_path):
    agent = host.agent(daemon, privileges=())
    host.job("one_rank_lags", env={"LAG_SECONDS": "1000"})
    wait_for(lambda: is_lagging(daemon))
    host.send("STOP", "rollcall-agent")
    time.sleep(6)  # twice the wait of a hang
    host.send("CONT", "rollcall-agent")
    time.sleep(1.5)  # less than the wait of a hang
    assert no_reports(tmp_path), "6 s of them nobody saw"
    verdict = wait_for_report(tmp_path)
    assert [culprit["rank"] for culprit in verdict["culprits"]] == [3]
    assert agent.process.poll() is None


@pytest.mark.long
def test_a_run_knows_its_job_without_a_communicator_by_the_name_that_the_agent_gives_its_host(
        host, daemon, tmp_path):
    host.agent(daemon, privileges=())
    wait_for((host.folder / "agent" / "agent.info").exists)
    run = host.start(BUILD / "bin" / "rollcall", "run", "--sim", f"--daemon={daemon.address}",
                     f"--report-dir={tmp_path / 'here'}", "--", RANKS, "-n", "4", "--",
                     sys.executable, pathlib.Path(__file__).parents[1] / "jobs" / "python_start.py",
                     env={"ROLLCALL_DIR": str(host.folder / "agent")})
    run.read_until("in make_the_data_set")


def test_the_agent_writes_its_info_file(host, daemon):
    host.agent(daemon)
    info = host.folder / "agent" / "agent.info"
    wait_for(info.exists)
    assert info.read_text() == f"{daemon.address}\nhost\nthe-host\n"
    assert info.stat().st_mode & 0o7777 == 0o644


def as_user(uid):
    return ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups"]


def metrics(daemon):
    with urllib.request.urlopen(f"{daemon.page}/metrics", timeout=120) as answer:
        return answer.read().decode()


def test_whoever_fills_the_daemon_with_jobs_leaves_a_place_for_another_users_hang(
        host, start_daemon):
    """A past fault: invented names of jobs, without any credential, took all places for an hour."""
    daemon = start_daemon(f"--token-file={host.tokens}", "--max-jobs=8")
    host.agent(daemon)
    for number in range(30):
        host.start(*as_user(12345), "env", "RANK=0", "WORLD_SIZE=1", f"ROLLCALL_JOB=flood-{number}",
                   f"LD_PRELOAD={LIBRARY}", "sleep", "1000")
    wait_for(lambda: len(ask(daemon, "status")["jobs"]) == 8)
    host.job("one_rank_stops_calling", *as_user(1234))
    wait_for_status(daemon, "a-job: hung")
    over = [line for line in metrics(daemon).splitlines()
            if line.startswith("rollcall_over_share_total{")]
    assert over and all('/12345"' in line and 'what="jobs"' in line for line in over), over
