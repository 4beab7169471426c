# SPDX-License-Identifier: Apache-2.0
"""The units of agent and daemon: judged by systemd-analyze, their words to systemd, and both started
for real by a systemd that is the first process of its own namespaces."""
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import time

import pytest
from conftest import BUILD, CLONE, Service, wait_for

# The tests share a machine, and the last one stops its services.
pytestmark = pytest.mark.xdist_group("systemd")

HERE = pathlib.Path(__file__).resolve().parent
UNITS = HERE.parents[2] / "deploy" / "systemd"
NAMES = ("rollcalld", "rollcall-agent")
CONFIGS = {"rollcalld": "daemon.yaml", "rollcall-agent": "agent.yaml"}
# What `systemd-analyze security` may give, of 100: the agent looks at other users' processes.
MOST_EXPOSED = {"rollcalld": 15, "rollcall-agent": 35}

needs_systemd = pytest.mark.skipif(shutil.which("systemd-analyze") is None,
                                   reason="there is no systemd; to have it:  apt-get install systemd")


def settings(name):
    """KEY -> values of a unit."""
    found = {}
    for key, value in re.findall(r"^(\w+)=(.*)$", (UNITS / f"{name}.service").read_text(),
                                 re.MULTILINE):
        found.setdefault(key, []).append(value)
    return found


@needs_systemd
@pytest.mark.parametrize("name", NAMES)
def test_systemd_understands_each_line_of_the_unit(name, tmp_path):
    unit = tmp_path / f"{name}.service"
    # The program need not be installed.
    text = (UNITS / unit.name).read_text()
    unit.write_text(text.replace(f"/usr/bin/{name}", str(BUILD / "bin" / name)))
    result = subprocess.run(["systemd-analyze", "verify", unit], capture_output=True, text=True,
                            timeout=120, check=False)
    assert (result.returncode, result.stderr) == (0, "")


@needs_systemd
@pytest.mark.parametrize("name", NAMES)
def test_the_unit_is_closed_against_most_of_the_system(name):
    result = subprocess.run(
        ["systemd-analyze", "security", "--offline=true", "--no-pager",
         f"--threshold={MOST_EXPOSED[name]}", UNITS / f"{name}.service"],
        capture_output=True, text=True, timeout=120, check=False)
    assert result.returncode == 0, result.stdout


def test_the_units_are_no_root_and_have_no_capability_but_two():
    daemon, agent = settings("rollcalld"), settings("rollcall-agent")
    assert daemon["DynamicUser"] == agent["DynamicUser"] == ["yes"]
    assert daemon["CapabilityBoundingSet"] == [""] and "AmbientCapabilities" not in daemon
    two = ["CAP_SYS_PTRACE CAP_DAC_READ_SEARCH"]
    assert agent["CapabilityBoundingSet"] == agent["AmbientCapabilities"] == two
    # With one of these it would see no other user's process, or no GPU and no log of the kernel.
    closed = {"PrivateUsers", "ProtectProc", "PrivateDevices", "ProtectKernelLogs", "ProtectClock"}
    assert not closed & set(agent)


# --- Words to systemd.

class Notified(Service):
    """A service with a socket of systemd."""

    def __init__(self, folder, arguments, watchdog=""):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(str(folder / "notify"))
        self.socket.settimeout(20)
        super().__init__(arguments, env={"NOTIFY_SOCKET": str(folder / "notify"),
                                         "WATCHDOG_USEC": watchdog})

    def next(self):
        return self.socket.recv(4096).decode()

    def next_with(self, words):
        while words not in (message := self.next()):
            pass
        return message


@pytest.fixture
def notified(tmp_path):
    services = []

    def start(program, *flags, **options):
        services.append(Notified(tmp_path, [BUILD / "bin" / program, "--config=none", *flags],
                                 **options))
        return services[-1]

    yield start
    for service in services:
        if service.process.poll() is None:
            service.kill(signal.SIGKILL)
        service.socket.close()


def test_the_daemon_is_ready_when_agents_can_connect(notified, tmp_path):
    daemon = notified("rollcalld", "--listen=127.0.0.1:0", "--http=none",
                      f"--report-dir={tmp_path / 'reports'}")
    ready = daemon.next()
    assert ready.startswith("READY=1\nSTATUS=agents on 127.0.0.1:")
    port = int(re.search(r"127\.0\.0\.1:(\d+)", ready)[1])
    socket.create_connection(("127.0.0.1", port), timeout=5).close()
    daemon.process.send_signal(signal.SIGHUP)
    assert re.fullmatch(r"RELOADING=1\nMONOTONIC_USEC=\d+", daemon.next())
    assert daemon.next().startswith("READY=1\n")
    daemon.process.terminate()
    assert daemon.next() == "STOPPING=1"
    assert daemon.process.wait(timeout=120) == 0


@pytest.mark.parametrize("program", NAMES)
def test_a_service_shows_life_as_often_as_systemd_wants_it(program, notified, tmp_path):
    flags = {"rollcalld": ["--listen=127.0.0.1:0", "--http=none", f"--report-dir={tmp_path / 'reports'}"],
             "rollcall-agent": ["--daemon=127.0.0.1:1", f"--dir={tmp_path}", "--scope=directory"]}
    service = notified(program, *flags[program], watchdog="600000")
    assert service.next().startswith("READY=1")
    begun = time.monotonic()
    for _ in range(5):
        service.next_with("WATCHDOG=1")
    assert time.monotonic() - begun < 20, "not each half of the time that systemd gives, which is 0.6 s"


# --- For real.

class Machine:
    """A systemd, and commands beside it."""

    def __init__(self, folder):
        self.folder = folder
        self.process = subprocess.Popen([HERE / "boot_systemd.sh", folder, CLONE],
                                        stdin=subprocess.DEVNULL,
                                        stdout=open(folder / "console", "w"),
                                        stderr=subprocess.STDOUT, start_new_session=True)
        self.pid = None

    def find_systemd(self):
        children = pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        for child in children.read_text().split() if children.exists() else ():
            if pathlib.Path(f"/proc/{child}/comm").read_text() == "systemd\n":
                self.pid = child
        return self.pid

    def run(self, *command, timeout=120):
        return subprocess.run(["nsenter", f"--target={self.pid}", "--mount", "--pid", "--ipc", "--uts", "--net",
                               "--cgroup", "--root", "--wd", "--", *map(str, command)],
                              capture_output=True, text=True, timeout=timeout, check=False)

    def show(self, name, key):
        return self.run("systemctl", "show", f"--property={key}", "--value", name).stdout.strip()

    def journal(self, *match):
        said = self.run("journalctl", "--output=json", "--no-pager", *match).stdout
        return [json.loads(line) for line in said.splitlines()]

    def end(self):
        self.process.kill()
        self.process.wait(timeout=120)


def put(folder, path, text):
    file = folder / "extra" / path.lstrip("/")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


@pytest.fixture(scope="module")
def machine():
    if os.geteuid() != 0 or shutil.which("unshare") is None or not os.path.exists(
            "/lib/systemd/systemd"):
        pytest.skip("needs root, unshare and systemd")
    # Not below pytest's folder: every user of the machine must reach the programs.
    folder = pathlib.Path("/tmp") / f"rollcall-systemd-{os.getpid()}"
    (folder / "layer").mkdir(parents=True)
    for name in NAMES:
        put(folder, f"/etc/systemd/system/{name}.service", (UNITS / f"{name}.service").read_text())
        shutil.copy(BUILD / "bin" / name, folder / "extra" / name)
    programs = folder / "extra" / "usr" / "bin"
    programs.mkdir(parents=True)
    for name in NAMES:
        (folder / "extra" / name).rename(programs / name)
        os.chmod(programs / name, 0o755)
    token = subprocess.run([BUILD / "bin" / "rollcall", "token", "new",
                            f"--file={folder / 'extra' / 'etc' / 'rollcall-tokens'}", "--name=agent",
                            "--role=agent", "--host=*"], capture_output=True, text=True, check=True)
    put(folder, "/etc/rollcall/tokens", (folder / "extra/etc/rollcall-tokens").read_text())
    put(folder, "/etc/rollcall/agent.token", token.stdout)
    os.chmod(folder / "extra/etc/rollcall/agent.token", 0o600)  # only root, and who may read all
    put(folder, "/etc/rollcall/daemon.yaml",
        "token-file: /etc/rollcall/tokens\nhang-after: 3s\n")
    put(folder, "/etc/rollcall/agent.yaml",
        "token-file: /etc/rollcall/agent.token\ndaemon-user: any\nhost-facts: off\n")
    made = Machine(folder)
    try:
        wait_for(lambda: made.process.poll() is not None or made.find_systemd())
        if made.process.poll() is not None:
            pytest.skip(f"systemd cannot run here: {(folder / 'console').read_text()[-300:]}")
        try:
            wait_for(lambda: made.run("systemctl", "is-system-running").stdout.strip() in (
                "running", "degraded"), 60)
        except AssertionError:
            pytest.skip(f"systemd does not come up here: {(folder / 'console').read_text()[-300:]}")
        yield made
    finally:
        made.end()
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module")
def services(machine):
    """Both services, started as an admin does."""
    for name in NAMES:
        started = machine.run("systemctl", "start", name)
        log = machine.run("journalctl", "--no-pager", "--unit", name).stdout
        assert started.returncode == 0, started.stderr + log
    return machine


def process_status(machine, name):
    pid = machine.show(name, "MainPID")
    text = machine.run("cat", f"/proc/{pid}/status").stdout
    return dict(line.split(":\t", 1) for line in text.splitlines() if ":\t" in line)


def test_the_services_run_as_users_of_their_own_with_two_capabilities(services):
    daemon, agent = (process_status(services, name) for name in NAMES)
    uids = [int(status["Uid"].split()[0]) for status in (daemon, agent)]
    assert all(61184 <= uid <= 65519 for uid in uids) and uids[0] != uids[1]
    assert int(daemon["CapBnd"], 16) == int(daemon["CapPrm"], 16) == 0
    two = (1 << 19) | (1 << 2)  # CAP_SYS_PTRACE, CAP_DAC_READ_SEARCH
    assert int(agent["CapEff"], 16) == int(agent["CapBnd"], 16) == two
    for status in (daemon, agent):
        assert status["NoNewPrivs"] == "1" and status["Seccomp"] == "2"


def test_the_agent_reports_to_the_daemon(services):
    wait_for(lambda: services.show("rollcalld", "StatusText").endswith(": 1"))
    wait_for(lambda: services.show("rollcall-agent", "StatusText") == "reports to 127.0.0.1:7655")


def test_the_daemon_keeps_its_files_where_the_unit_says(services):
    found = services.run("find", "/var/lib/rollcall/", "-maxdepth", "1", "-printf", "%f ").stdout
    assert "rollcall-reports" in found and "rollcall-reports.db" in found


def test_a_job_of_another_user_gets_a_verdict_with_job_and_incident_in_the_journal(services):
    def inside(name):
        return pathlib.Path("/clone") / (BUILD / name).resolve().relative_to(CLONE)

    job = ["nsenter", f"--target={services.pid}", "--mount", "--pid", "--ipc", "--uts", "--net", "--cgroup",
           "--root", "--wd", "--", "setpriv", "--reuid=1234", "--regid=1234", "--clear-groups", "env",
           f"LD_PRELOAD={inside('lib/librollcall.so')}", f"LD_LIBRARY_PATH={inside('sim')}",
           "ROLLCALL_JOB=other-job", inside("tests/ranks"), "-n", "4", "--keep-going", "--",
           inside("tests/one_rank_stops_calling")]
    with subprocess.Popen(job, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as running:
        try:
            line, = wait_for(lambda: services.journal("ROLLCALL_JOB=other-job"))
        finally:
            running.kill()
    assert "rank 3" in line["MESSAGE"] and line["PRIORITY"] == "6"
    assert line["_SYSTEMD_UNIT"] == "rollcalld.service"
    assert line["MESSAGE"].startswith(line["ROLLCALL_INCIDENT"])


def test_a_reload_is_over_when_systemctl_returns(services):
    for name in NAMES:
        pid = services.show(name, "MainPID")
        assert services.run("systemctl", "reload", name).returncode == 0
        wait_for(lambda name=name: [entry for entry in services.journal(f"_SYSTEMD_UNIT={name}.service")
                                    if entry["MESSAGE"] == "reloaded: no flag has changed"])
        assert services.show(name, "MainPID") == pid and services.show(name, "ActiveState") == "active"


def test_systemd_starts_a_daemon_anew_that_stands_still(services):
    quick = "/run/systemd/system/rollcalld.service.d/quick.conf"
    services.run("sh", "-c", f"mkdir -p {os.path.dirname(quick)} && "
                 f"printf '[Service]\\nWatchdogSec=2\\nWatchdogSignal=KILL\\nRestartSec=0\\n' > {quick} && "
                 "systemctl daemon-reload && systemctl restart rollcalld")
    pid = services.show("rollcalld", "MainPID")
    time.sleep(5)  # longer than the time of the watchdog: it must show life in between
    assert services.show("rollcalld", "MainPID") == pid
    services.run("kill", "-STOP", pid)
    wait_for(lambda: services.show("rollcalld", "MainPID") not in (pid, "0")
             and services.show("rollcalld", "ActiveState") == "active", 40)


def test_wrong_flags_are_not_tried_again_and_again(services):
    services.run("sh", "-c", "cp /etc/rollcall/agent.yaml /tmp/good && echo 'scope: galaxy' >> "
                 "/etc/rollcall/agent.yaml")
    try:
        assert services.run("systemctl", "restart", "rollcall-agent").returncode != 0
        assert services.show("rollcall-agent", "ActiveState") == "failed"
        said = " ".join(entry["MESSAGE"] for entry in services.journal("--unit=rollcall-agent")
                        if isinstance(entry["MESSAGE"], str))
        assert "/etc/rollcall/agent.yaml:4: scope: " in said
    finally:
        services.run("cp", "/tmp/good", "/etc/rollcall/agent.yaml")
    assert services.run("systemctl", "restart", "rollcall-agent").returncode == 0


def test_nothing_is_left_when_the_services_have_stopped(services):
    assert services.run("systemctl", "stop", *NAMES).returncode == 0
    for name in NAMES:
        assert services.show(name, "Result") == "success"
    assert services.run("ls", "/run/rollcall", "/run/rollcall-agent").stdout == ""
