# SPDX-License-Identifier: Apache-2.0
"""Runs jobs of real processes under `rollcall run`, daemons and agents, and reads their output."""
import contextlib
import ctypes
import functools
import json
import os
import pathlib
import re
import shutil
import signal
import ssl
import subprocess
import tempfile
import time
import urllib.error
import urllib.request

import pytest
from processes import PATIENCE, Service, read_until, wait_for  # noqa: F401 (some are for the tests)

BUILD = pathlib.Path(os.environ["ROLLCALL_BUILD"]).resolve()
CLONE = BUILD.parents[1]
ROLLCALL = BUILD / "bin" / "rollcall"
VICTIMS = BUILD / "tests"
AS_NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]


def long(*values):
    """A row of parameters for --all only. The gate runs the other rows."""
    return pytest.param(*values, marks=pytest.mark.long)


def pytest_configure():
    """Makes the tests independent of who starts them."""
    mount_dev_shm()
    # A shell starts what runs in the background with these two ignored, and programs inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGQUIT, signal.SIG_DFL)


def mount_dev_shm():
    """A /dev/shm of the tests' own, if this user may mount: what others left in the shared one changes no
    test. It is as large as that one, so a container's is as small as before."""
    CLONE_NEWNS, MS_REC, MS_PRIVATE = 0x20000, 0x4000, 0x40000
    libc = ctypes.CDLL(None)
    shared = os.statvfs("/dev/shm")
    options = f"size={shared.f_blocks * shared.f_frsize},mode=1777".encode()
    if libc.unshare(CLONE_NEWNS) == 0 and libc.mount(b"none", b"/", None, MS_REC | MS_PRIVATE, None) == 0:
        libc.mount(b"tmpfs", b"/dev/shm", b"tmpfs", 0, options)


@functools.lru_cache
def can_be_others():
    """Whether this user can become another one. Root of a user namespace may be its only user."""
    return (os.geteuid() == 0
            and subprocess.run([*AS_NOBODY, "true"], capture_output=True, check=False).returncode == 0)


def need_a_loader(what_for):
    """Leaves the test out if the programs under test are those of the packages, which are static."""
    with open(ROLLCALL, "rb") as program:
        names_its_loader = b"/ld-linux" in program.read(4096)
    if not names_its_loader:
        pytest.skip(f"the programs are static: no loader {what_for}")


def stepped_clock(step_file):
    """The environment in which a program of Rollcall has a clock that is ahead by the seconds in this file."""
    need_a_loader("preloads another clock into them")
    return {"LD_PRELOAD": str(BUILD / "tests" / "stepped_clock.so"), "STEP_FILE": str(step_file)}


class Result:
    """A job that has ended, and its report if there is one."""

    def __init__(self, process, out, err, reports, seconds):
        self.exit_code = process.returncode
        self.out = out
        self.err = err
        self.seconds = seconds
        self.reports = sorted(reports.iterdir()) if reports.exists() else []

    @property
    def incident(self):
        assert len(self.reports) == 1, f"{self.reports}\n{self.err}"
        return json.loads((self.reports[0] / "incident.json").read_text())

    @property
    def verdict(self):
        return self.incident["verdicts"][0]


def ask(daemon, path):
    """The JSON answer of a daemon to a request of its HTTP API."""
    with urllib.request.urlopen(f"{daemon.page}/api/v1/{path}", timeout=120) as answer:
        return json.load(answer)


def find_communicator(daemon, ranks=4):
    """The communicator that all ranks of the daemon's only job have joined. None: not yet."""
    for job in ask(daemon, "status")["jobs"]:
        for communicator in job["communicators"]:
            if communicator["members"] == ranks:
                return communicator
    return None


def reports_in(folder):
    """The complete reports: a report has another name while the daemon writes it."""
    return [path for path in folder.glob("*") if not path.name.startswith(".")]


@pytest.fixture
def reports(tmp_path):
    return tmp_path / "reports"


@pytest.fixture
def run(reports):
    """run(victim, ranks=4, hang_after="3s", flags=[...], env={...}) -> Result

    arguments: of the victim. launcher: what starts its ranks. stop_after: seconds after which the job is
    ended, where it may hang and Rollcall may not say so.
    until: ends the job once stderr holds this, for verdicts that --on-hang=abort does not act on.
    """

    def run_job(victim, ranks=4, hang_after="3s", on_hang="abort", flags=(), env=None, timeout=120,
                until=None, arguments=(), launcher=None, stop_after=None):
        command = [
            ROLLCALL, "run", "--sim", f"--hang-after={hang_after}", f"--on-hang={on_hang}",
            f"--report-dir={reports}", *flags, "--",
            *(launcher or [VICTIMS / "ranks", "-n", str(ranks), "--keep-going", "--"]),
            VICTIMS / victim, *arguments,
        ]
        begun = time.monotonic()
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   stdin=subprocess.DEVNULL, text=True,
                                   env={**os.environ, **(env or {})})
        begin = read_until(process, until) if until else ""
        if until:
            process.terminate()
        try:
            out, err = process.communicate(timeout=stop_after or timeout)
            err = begin + err
        except subprocess.TimeoutExpired:
            process.terminate()
            out, err = process.communicate(timeout=120)
            if stop_after:
                return Result(process, out, err, reports, time.monotonic() - begun)
            pytest.fail(f"the job did not end within {timeout} s\n{out}\n{err}")
        return Result(process, out, err, reports, time.monotonic() - begun)

    return run_job


@contextlib.contextmanager
def daemons(folder):
    services = []

    def start(*flags):
        usual = ["--listen=127.0.0.1:0", "--http=127.0.0.1:0", "--hang-after=3s",
                 f"--report-dir={folder / 'daemon-reports'}"]
        given = {flag.partition("=")[0] for flag in flags}
        service = Service([BUILD / "bin" / "rollcalld", *flags,
                           *(flag for flag in usual if flag.partition("=")[0] not in given)])
        services.append(service)
        said = service.read_until(
            r"agents on (127\.0\.0\.1:\d+), pages on (http://127\.0\.0\.1:\d+)/")
        service.address, service.page = said.groups()
        return service

    try:
        yield start
    finally:
        for service in services:
            if service.process.poll() is None:
                service.kill()


@pytest.fixture
def start_daemon(tmp_path):
    """start_daemon(*flags) -> Service, with its `address` and that of its `page`"""
    with daemons(tmp_path) as start:
        yield start


@pytest.fixture
def daemon(start_daemon):
    return start_daemon()


@contextlib.contextmanager
def jobs(folder):
    started = []

    def start(daemon, victim="one_rank_stops_calling", name="a-job", ranks=4, said="rank 3"):
        job = Service([ROLLCALL, "run", "--sim", f"--daemon={daemon.address}", "--hang-after=3s",
                       f"--report-dir={folder / 'here'}", "--", VICTIMS / "ranks", "-n",
                       str(ranks), "--keep-going", "--", VICTIMS / victim],
                      env={"ROLLCALL_JOB": name})
        started.append(job)
        if said:
            job.read_until(said)
        return job

    try:
        yield start
    finally:
        for job in started:
            if job.process.poll() is None:
                job.kill()


@pytest.fixture
def start_job(tmp_path):
    """start_job(daemon, victim, name=...): a job that lives until the test ends."""
    with jobs(tmp_path) as start:
        yield start


@pytest.fixture(scope="session")
def hung_daemon(tmp_path_factory):
    """A daemon whose only job, a-job, hangs: for tests that only ask."""
    folder = tmp_path_factory.mktemp("hung")
    with daemons(folder) as start_one, jobs(folder) as start:
        daemon = start_one()
        start(daemon)
        yield daemon


# --- Security: certificates, tokens, another user.
needs_another_user = pytest.mark.skipif(
    not can_be_others(), reason="needs root, in a user namespace that has other users too")


def rollcall(*arguments, before=(), **options):
    return subprocess.run([*before, ROLLCALL, *arguments], capture_output=True, text=True,
                          timeout=120, check=False, **options)


def usable_by_all(path):
    """A copy of a program where every user may run it."""
    copy = shutil.copy(BUILD / "bin" / path, f"/tmp/{path}-{os.getpid()}")
    os.chmod(copy, 0o755)
    return copy


@pytest.fixture(scope="session")
def issued(tmp_path_factory):
    folder = tmp_path_factory.mktemp("issued") / "pki"
    assert rollcall("pki", "init", str(folder)).returncode == 0
    for arguments in (["--role=daemon", "--host=localhost", "--host=127.0.0.1"],
                      ["--role=agent", "--host=node-1"], ["--role=agent", "--host=node-2"],
                      ["--role=viewer"], ["--role=operator"]):
        done = rollcall("pki", "issue", str(folder), *arguments)
        assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture
def pki(issued, tmp_path):
    """A set of certificates made by `rollcall pki`: for a daemon, node-1, node-2, a viewer, an operator."""
    return pathlib.Path(shutil.copytree(issued, tmp_path / "pki"))


def client(folder, name):
    return [f"--tls-ca={folder}/ca.crt", f"--tls-cert={folder}/{name}.crt",
            f"--tls-key={folder}/{name}.key"]


def let_everybody_pass_to(path):
    """Through the folders that pytest has made for its own user alone."""
    for folder in path.parents:
        if folder == pathlib.Path(tempfile.gettempdir()):
            break
        folder.chmod(folder.stat().st_mode | 0o055)


def copy_for_nobody(pki, tmp_path):
    """A copy of the certificates and keys that the user nobody can read, for a test only."""
    shared = tmp_path / "shared"
    shutil.copytree(pki, shared)
    for path in [shared, *shared.rglob("*")]:
        os.chown(path, 65534, 65534)
    let_everybody_pass_to(shared)
    return shared


@pytest.fixture
def start_tls_daemon(tmp_path, pki):
    """A daemon that trusts nobody without a certificate or token, but its own user.

    tls: certificate, key, and authorities of clients; without it, those of `pki`.
    """
    services = []

    def start(*flags, pki=pki, tls=None):
        certificate, key, authorities = tls or [pki / name for name in ("daemon.crt", "daemon.key",
                                                                       "ca.crt")]
        service = Service([BUILD / "bin" / "rollcalld", "--listen=127.0.0.1:0",
                           "--http=127.0.0.1:0", "--hang-after=3s",
                           f"--report-dir={tmp_path / 'reports'}", f"--tls-cert={certificate}",
                           f"--tls-key={key}", f"--tls-client-ca={authorities}", *flags])
        services.append(service)
        said = service.read_until(r"agents on 127\.0\.0\.1:(\d+), pages on https://127\.0\.0\.1:(\d+)/")
        service.port, service.page_port = said.groups()
        service.address = f"127.0.0.1:{service.port}"
        return service

    yield start
    for service in services:
        if service.process.poll() is None:
            service.kill()


@pytest.fixture
def start_agent_of_nobody(pki, tmp_path):
    """start_agent_of_nobody(daemon, name, *flags): only its certificate says who it is.

    tls: the flags for it, if it is none of `pki`.
    """
    program, shared, agents = usable_by_all("rollcall-agent"), copy_for_nobody(pki, tmp_path), []

    def start(daemon, name, *flags, tls=None):
        agents.append(Service([*AS_NOBODY, program, f"--daemon={daemon.address}", "--host-facts=off",
                               f"--dir={shared / 'segments'}", "--scope=directory",
                               *(tls or client(shared, name)), *flags]))
        return agents[-1]

    yield start
    for agent in agents:
        if agent.process.poll() is None:
            agent.kill()
    os.unlink(program)


def count_agents(daemon):
    """The connected agents, as the page tells the daemon's own user."""
    return json.loads(page(daemon, "/api/v1/jobs")[1])["agents"]


def new_token(tmp_path, name, *flags):
    """A token of tmp_path/tokens, and the file with it."""
    made = rollcall("token", "new", f"--file={tmp_path / 'tokens'}", f"--name={name}", *flags)
    token = made.stdout.strip()
    assert re.fullmatch(r"rollcall_[A-Za-z0-9_-]{43}", token)
    assert token not in made.stderr and token not in (tmp_path / "tokens").read_text()
    file = tmp_path / f"token-of-{name}"
    file.touch(mode=0o600)
    file.write_text(token + "\n")
    return token, file


def seen_by_ps(pid):
    """The command lines and environments of a process and of all that it has started."""
    process = pathlib.Path(f"/proc/{pid}")
    seen = (process / "cmdline").read_text() + (process / "environ").read_text(errors="replace")
    for children in process.glob("task/*/children"):
        seen += "".join(seen_by_ps(child) for child in children.read_text().split())
    return seen


def page(daemon, path, headers=None, data=None, certificate=None):
    """Status and text of an answer. `certificate`: path of its files, without .crt and .key."""
    request = urllib.request.Request(f"https://127.0.0.1:{daemon.page_port}{path}",
                                     headers=headers or {}, data=data)
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    if certificate is not None:
        context.load_cert_chain(f"{certificate}.crt", f"{certificate}.key")
    try:
        with urllib.request.urlopen(request, timeout=120, context=context) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()
