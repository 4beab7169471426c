# SPDX-License-Identifier: Apache-2.0
"""Flags of daemon and agent from a file, checked, and read again while they run."""
import os
import pathlib
import re
import signal
import subprocess

import pytest
from conftest import AS_NOBODY, BUILD, Service, let_everybody_pass_to, needs_another_user, usable_by_all

ROOT = pathlib.Path(__file__).resolve().parents[3]
PROGRAMS = ("rollcalld", "rollcall-agent")
GROUP = 4321  # no entry in /etc/group is needed


def check(program, text, tmp_path, *flags):
    file = tmp_path / "flags.yaml"
    file.write_text(text)
    return subprocess.run([BUILD / "bin" / program, "--check-config", f"--config={file}", *flags],
                          capture_output=True, text=True, timeout=120, check=False), file


@pytest.fixture
def start(tmp_path):
    """start(text, *flags, env=...) -> a daemon with a file of flags"""
    services = []

    def start_daemon(text, *flags, env=None):
        file = tmp_path / "daemon.yaml"
        file.write_text(f"http: 127.0.0.1:0\nreport-dir: {tmp_path / 'of-file'}\n" + text)
        services.append(Service([BUILD / "bin" / "rollcalld", f"--config={file}", *flags], env=env))
        services[-1].file = file
        return services[-1]

    yield start_daemon
    for service in services:
        if service.process.poll() is None:
            service.kill()


def test_the_command_line_counts_more_than_the_environment_than_the_file(start, tmp_path):
    by_file = start("listen: 127.0.0.1:0\n")
    assert by_file.read_until(r"reports in (\S+)")[1] == str(tmp_path / "of-file")
    by_environment = start("listen: 127.0.0.1:0\n",
                           env={"ROLLCALL_REPORT_DIR": str(tmp_path / "of-environment")})
    assert by_environment.read_until(r"reports in (\S+)")[1] == str(tmp_path / "of-environment")
    by_flag = start("listen: 127.0.0.1:0\n", f"--report-dir={tmp_path / 'of-flag'}",
                    env={"ROLLCALL_REPORT_DIR": str(tmp_path / "of-environment")})
    assert by_flag.read_until(r"reports in (\S+)")[1] == str(tmp_path / "of-flag")


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_usable_file_is_checked_without_a_start(program, tmp_path):
    result, file = check(program, "token-file: \"\"\n", tmp_path)
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout == f"{program}: the flags are usable, with {file}\n"


@pytest.mark.parametrize("program, text, wrong", [
    ("rollcalld", "\nlisten-on: a\n", r':2: unknown flag "listen-on"'),
    ("rollcalld", "listn: a\n", r':1: unknown flag "listn"; did you mean "listen"\?'),
    ("rollcalld", "max-jobs: 0\n", r":1: max-jobs: Value 0 not in range"),
    ("rollcalld", "hang-after: soon\n", r":1: hang-after: "),
    ("rollcalld", "insecure: yes\n", r':1: insecure is true or false, and not "yes"'),
    ("rollcalld", "listen: 0.0.0.0:7655\n", "TLS"),
    ("rollcalld", "alert: pigeon=coop\n", "--alert wants KIND=TARGET"),
    ("rollcalld", "listen: [a\n", r":2: not YAML: "),
    ("rollcall-agent", "scope: galaxy\n", r":1: scope: "),
    ("rollcall-agent", "deamon: a:1\n", r':1: unknown flag "deamon"; did you mean "daemon"\?'),
    ("rollcall-agent", "tls-cert: a\n", "--tls-cert and --tls-key belong together"),
    ("rollcall-agent", "redact: \"(\"\n", r":1: redact: "),
])
def test_a_wrong_file_ends_the_check_with_2_and_says_what_is_wrong(program, text, wrong, tmp_path):
    result, file = check(program, text, tmp_path)
    assert result.returncode == 2 and result.stdout == ""
    assert result.stderr.startswith(f"{program}: ")
    assert re.search(f"{file}{wrong}" if wrong.startswith(":") else wrong, result.stderr), result.stderr


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_example_of_the_package_is_usable(program, tmp_path):
    name = {"rollcalld": "daemon", "rollcall-agent": "agent"}[program]
    text = (ROOT / "deploy" / "systemd" / f"{name}.yaml").read_text()
    assert check(program, text, tmp_path)[0].returncode == 0


def test_a_wrong_file_stops_the_start_with_another_code_than_a_failure(start):
    wrong = start("max-jobs: none\n")
    assert wrong.process.wait(timeout=120) == 2
    assert f"{wrong.file}:3: max-jobs: " in wrong.read_rest()


def test_a_reload_says_what_counts_now_and_what_only_after_a_restart(start):
    daemon = start("listen: 127.0.0.1:0\n")
    daemon.read_until("reports in")
    before = daemon.file.read_text()
    daemon.file.write_text(before + "alerts-per-hour: 9\nmax-jobs: 7\n")
    daemon.process.send_signal(signal.SIGHUP)
    daemon.read_until(r"reloaded: alerts-per-hour$")
    daemon.read_until(r"these count only after a restart: max-jobs$")
    # What is in use already is not a change; what waits for a restart is reported again.
    daemon.process.send_signal(signal.SIGHUP)
    daemon.read_until(r"these count only after a restart: max-jobs$")
    daemon.file.write_text(before + "alerts-per-hour: 9\n")
    daemon.process.send_signal(signal.SIGHUP)
    daemon.read_until(r"reloaded: no flag has changed$")
    assert daemon.process.poll() is None


def test_a_wrong_file_at_a_reload_changes_nothing(start):
    daemon = start("listen: 127.0.0.1:0\n")
    daemon.read_until("reports in")
    before = daemon.file.read_text()
    daemon.file.write_text(before + "alerts-per-hour: 0\n")
    daemon.process.send_signal(signal.SIGHUP)
    daemon.read_until(rf"keeping the flags as they were: {daemon.file}:4: alerts-per-hour: ")
    daemon.file.write_text(before)
    daemon.process.send_signal(signal.SIGHUP)
    daemon.read_until("reloaded: no flag has changed")


def test_the_agent_reads_its_file_again_and_lives_on(tmp_path):
    file = tmp_path / "agent.yaml"
    file.write_text(f"daemon: 127.0.0.1:1\ndir: {tmp_path / 'segments'}\nscope: directory\n")
    agent = Service([BUILD / "bin" / "rollcall-agent", f"--config={file}"])
    try:
        agent.read_until(f"watching {tmp_path / 'segments'}, daemon at 127.0.0.1:1")
        agent.read_until("cannot reach the daemon")
        file.write_text(file.read_text() + "stacks: off\n")
        agent.process.send_signal(signal.SIGHUP)
        agent.read_until("these count only after a restart: stacks")
    finally:
        agent.kill()
    assert agent.process.returncode == 0


@pytest.mark.parametrize("program", ["rollcall", *PROGRAMS])
def test_each_program_says_its_version_and_commit(program):
    said = subprocess.run([BUILD / "bin" / program, "--version"], capture_output=True, text=True,
                          timeout=120, check=True).stdout
    assert re.fullmatch(program + r" \d+\.\d+\.\d+( \(commit [0-9a-f]{12}(\+dirty)?\))?\n", said)


# --- docs/install.md, Three daemons.

def example(name):
    """The file of flags that docs/install.md shows under this name."""
    text = (ROOT / "docs" / "install.md").read_text()
    return re.search(rf"<!-- checked: fleet {name} -->\n```(?:yaml)?\n(.*?)```", text, re.DOTALL)[1]


def type_commands(name, folder, etc):
    """What docs/install.md says, with `etc` for /etc/rollcall, and GROUP."""
    lines = [line for line in example(name).splitlines() if not line.startswith(("groupadd", "systemctl"))]
    text = "\n".join(lines).replace("/etc/rollcall", str(etc)).replace("-g rollcall-tls", f"-g {GROUP}")
    subprocess.run(["bash", "-euc", text], cwd=folder, check=True, capture_output=True, timeout=120,
                   env={**os.environ, "PATH": f"{BUILD / 'bin'}:{os.environ['PATH']}"})


@needs_another_user
def test_the_recipe_of_three_daemons_in_the_docs_gives_each_service_what_it_can_read(tmp_path):
    etc, pki = tmp_path / "etc", tmp_path / "rollcall-pki"
    etc.mkdir()
    type_commands("authority", tmp_path, etc)
    (pki / "store-url").write_text("postgresql://rollcall:PASSWORD@db-1.example/rollcall\n")
    type_commands("daemon", pki, etc)
    type_commands("agent", pki, etc)
    let_everybody_pass_to(etc / "daemon.key")
    daemons_user = ["setpriv", "--reuid=65534", "--regid=65534", f"--groups={GROUP}"]
    for program, name, before in (("rollcalld", "daemon.yaml", daemons_user), ("rollcall-agent", "agent.yaml", [])):
        text = example(name).replace("/etc/rollcall", str(etc))
        (etc / name).write_text(text)
        copy = usable_by_all(program)
        done = [subprocess.run([*user, copy, f"--config={etc / name}", "--check-config"], capture_output=True,
                               text=True, timeout=120, check=False) for user in (before, AS_NOBODY)]
        os.unlink(copy)
        assert (done[0].returncode, done[0].stderr) == (0, "")
        assert done[1].returncode == 2 and "ermission denied" in done[1].stderr, done[1]
        wrong, _ = check(program, text + "advertize: here\n", tmp_path)
        assert wrong.returncode == 2


def test_an_agent_takes_three_daemons_from_its_environment(tmp_path):
    addresses = re.search(r"^daemon: (.*)", example("agent.yaml"), re.MULTILINE)[1]
    assert addresses.count(",") == 2
    for value, code in ((addresses, 0), (addresses.removesuffix(":7655"), 2), (addresses + ",unix:/run/d", 2)):
        done = subprocess.run([BUILD / "bin" / "rollcall-agent", "--config=none", "--check-config"],
                              env={**os.environ, "ROLLCALL_DAEMON": value}, capture_output=True, text=True,
                              timeout=120, check=False)
        assert done.returncode == code, (value, done.stderr)
