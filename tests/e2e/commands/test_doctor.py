# SPDX-License-Identifier: Apache-2.0
"""`rollcall doctor` on real programs, folders, namespaces and daemons: what works, and what will not."""
import http.server
import json
import os
import shutil
import socket
import subprocess
import threading
import time

import pytest
from conftest import BUILD, VICTIMS, Service, client, needs_another_user, new_token, rollcall, wait_for

SMALL_C = "int main(void) { return 0; }\n"


def doctor(*arguments, before=(), env=None):
    """(exit code, checks by id)"""
    result = rollcall("doctor", "--format=json", *arguments, before=before,
                      env={**os.environ, **(env or {})})
    assert result.stdout, result.stderr
    answer = json.loads(result.stdout)
    states = [check["state"] for check in answer["checks"]]
    assert answer["problems"] == states.count("problem")
    assert answer["warnings"] == states.count("warning")
    assert result.returncode == (3 if answer["problems"] else 0), result.stderr
    return result.returncode, {check["id"]: check for check in answer["checks"]}


@pytest.fixture
def compiled(tmp_path):
    def build(*arguments, compiler="cc"):
        if shutil.which(compiler) is None:
            pytest.skip(f"no {compiler}")
        source = tmp_path / "small.c"
        source.write_text(SMALL_C)
        program = tmp_path / f"small-{len(list(tmp_path.iterdir()))}"
        made = subprocess.run([compiler, *arguments, source, "-o", program], capture_output=True, text=True,
                              check=False, timeout=120)
        if made.returncode != 0:
            pytest.skip(f"{compiler} {' '.join(arguments)}: {made.stderr[-200:]}")
        return program
    return build


def can_unshare(*flags):
    return subprocess.run(["unshare", *flags, "true"], capture_output=True, check=False).returncode == 0


def needs_namespace(*flags):
    return pytest.mark.skipif(not can_unshare(*flags), reason=f"unshare {' '.join(flags)} is not permitted")


# --- The host as it is.
def test_the_library_loads_here_and_the_folder_has_room(tmp_path):
    _, checks = doctor(env={"ROLLCALL_DIR": str(tmp_path)})
    for name in ("library", "folder", "limits", "switches", "pid-namespace"):
        assert checks[name]["state"] == "ok", checks[name]
    assert list(tmp_path.iterdir()) == []


def test_the_text_says_what_to_type_and_counts():
    result = rollcall("doctor", "--daemon=127.0.0.1:1")
    assert result.returncode == 3
    assert "PROBLEM  daemon" in result.stdout and "type:  systemctl status rollcalld" in result.stdout
    assert result.stdout.startswith("Rollcall has found 1 problem and ")


def test_wrong_flags_are_bad_usage():
    result = rollcall("doctor", "--formta=json")
    assert result.returncode == 2
    assert "did you mean --format?" in result.stderr


# --- The program of a job.
def test_a_dynamic_program_is_fine_and_really_loads_the_library(compiled):
    program = compiled()
    code, checks = doctor("--", program)
    assert checks["program"]["state"] == checks["sanitizer"]["state"] == "ok"
    assert code == 0, checks
    job = rollcall("run", "--sim", "--http=none", "--", program)
    assert job.returncode == 0 and "did not load the library" not in job.stderr, job.stderr


def test_a_static_program_is_a_problem_and_really_does_not_load_it(compiled):
    program = compiled("-static")
    _, checks = doctor("--", program)
    assert checks["program"]["state"] == "problem" and "is static" in checks["program"]["what"]
    job = rollcall("run", "--sim", "--http=none", "--", program)
    assert job.returncode == 0 and "did not load the library" in job.stderr, job.stderr


def test_a_program_of_musl_is_a_problem(compiled):
    _, checks = doctor("--", compiled(compiler="musl-gcc"))
    assert checks["program"]["state"] == "problem" and "musl" in checks["program"]["what"]


@needs_another_user
def test_a_setuid_program_is_a_problem(compiled):
    program = compiled()
    program.chmod(0o4755)
    assert doctor("--", program)[1]["program"]["state"] == "ok"  # its own user's
    os.chown(program, 65534, 65534)
    program.chmod(0o4755)
    check = doctor("--", program)[1]["program"]
    assert check["state"] == "problem" and "setuid" in check["what"]


def test_what_the_doctor_says_about_addresssanitizer_holds(compiled):
    program = compiled("-fsanitize=address")
    _, checks = doctor("--", program)
    assert checks["sanitizer"]["state"] == "problem"
    command = ["run", "--sim", "--http=none", "--", program]
    refused = rollcall(*command)
    helped = {"ASAN_OPTIONS": "verify_asan_link_order=0:detect_leaks=0"}
    assert refused.returncode != 0 and "does not come first" in refused.stderr
    assert rollcall(*command, env={**os.environ, **helped}).returncode == 0
    assert doctor("--", program, env=helped)[1]["sanitizer"]["state"] == "ok"


def test_a_static_nccl_and_a_dynamic_one_are_told_apart():
    check = doctor("--", VICTIMS / "healthy_mix")[1]["nccl"]
    assert check["state"] == "ok" and "libnccl.so.2" in check["what"], check
    check = doctor("--", VICTIMS / "healthy_mix_static")[1]["nccl"]
    assert check["state"] == "warning" and "static in" in check["what"], check


def test_the_nccl_of_python_packages_is_found_and_one_that_hides_it(tmp_path):
    site = tmp_path / "site"
    (site / "nvidia/nccl/lib").mkdir(parents=True)
    (site / "nvidia/nccl/lib/libnccl.so.2").touch()
    (site / "nvidia_nccl_cu12-2.27.3.dist-info").mkdir()
    (tmp_path / "old").mkdir()
    (tmp_path / "old/libnccl.so.2.18.5").touch()
    (tmp_path / "old/libnccl.so.2").symlink_to("libnccl.so.2.18.5")
    env = {"PYTHONPATH": str(site)}
    check = doctor("--", "/usr/bin/python3", "train.py", env=env)[1]["nccl"]
    assert check["state"] == "ok" and "NCCL 2.27.3" in check["what"], check
    check = doctor("--", "/usr/bin/python3", "train.py",
                   env={**env, "LD_LIBRARY_PATH": str(tmp_path / "old")})[1]["nccl"]
    assert check["state"] == "warning" and "2.18.5" in check["what"] and "unset" in check["type_next"], check


def test_the_program_is_never_started(tmp_path):
    script = tmp_path / "job"
    script.write_text(f"#!/bin/sh\ntouch {tmp_path}/started\n")
    script.chmod(0o755)
    assert doctor("--", script)[1]["program"]["state"] == "not_applicable"
    assert not (tmp_path / "started").exists()


# --- Folder and namespaces.
@needs_namespace("--mount")
def test_a_tiny_file_system_has_no_room(tmp_path):
    script = f"mount -t tmpfs -o size=64k tmpfs {tmp_path} && exec \"$@\""
    code, checks = doctor(before=["unshare", "--mount", "sh", "-c", script, "sh"],
                          env={"ROLLCALL_DIR": str(tmp_path)})
    assert code == 3
    assert checks["folder"]["state"] == "ok" and checks["room"]["state"] == "problem"


@needs_namespace("--mount")
@pytest.mark.parametrize("size, state", [("16m", "problem"), ("64m", "warning"), ("4g", "ok")])
def test_a_small_dev_shm_is_told_from_a_large_one(size, state):
    script = f"mount -t tmpfs -o size={size} tmpfs /dev/shm && exec \"$@\""
    _, checks = doctor(before=["unshare", "--mount", "sh", "-c", script, "sh"])
    assert checks["shared-memory"]["state"] == state, checks["shared-memory"]


@needs_another_user
def test_the_folder_of_another_user_is_a_problem(tmp_path):
    os.chown(tmp_path, 65534, 65534)
    check = doctor(env={"ROLLCALL_DIR": str(tmp_path)})[1]["folder"]
    assert check["state"] == "problem" and "belongs to user 65534" in check["what"]


@needs_namespace("--pid", "--fork")
@pytest.mark.parametrize("flags, state", [(["--mount-proc"], "ok"), ([], "problem")])
def test_a_proc_of_another_pid_namespace_is_noticed(flags, state):
    _, checks = doctor(before=["unshare", "--pid", "--fork", *flags])
    assert checks["pid-namespace"]["state"] == state, checks["pid-namespace"]


def test_a_limit_of_address_space_is_noticed():
    _, checks = doctor(before=["prlimit", "--as=500000000"])
    assert checks["limits"]["state"] == "problem" and "ulimit -v" in checks["limits"]["type_next"]


def test_a_missing_preload_is_noticed():
    _, checks = doctor(env={"LD_PRELOAD": "/no/such/librollcall.so"})
    assert checks["preload"]["state"] == "problem"
    assert checks["agent"]["state"] == "problem"  # and no agent would read what it records
    library = BUILD / "lib" / "librollcall.so"
    assert doctor(env={"LD_PRELOAD": str(library)})[1]["preload"]["state"] == "ok"


# --- Tracing.
FORBID_PTRACE = """
import ctypes, os, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
ptrace = {"x86_64": 101, "aarch64": 117}[os.uname().machine]
def code(operation, if_true, if_false, value):
    return struct.pack("HBBI", operation, if_true, if_false, value)
program = (code(0x20, 0, 0, 0)             # loads the number of the system call
           + code(0x15, 0, 1, ptrace)
           + code(0x06, 0, 0, 0x00050001)  # it fails with EPERM
           + code(0x06, 0, 0, 0x7fff0000)) # any other one is allowed
class Filter(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("code", ctypes.c_void_p)]
memory = ctypes.create_string_buffer(program)
rules = Filter(len(program) // 8, ctypes.addressof(memory))
assert libc.prctl(38, 1, 0, 0, 0) == 0                    # PR_SET_NO_NEW_PRIVS
assert libc.prctl(22, 2, ctypes.byref(rules), 0, 0) == 0  # PR_SET_SECCOMP
os.execv(sys.argv[1], sys.argv[1:])
"""


def test_a_seccomp_filter_that_forbids_tracing_is_named():
    _, free = doctor()
    if free["tracing"]["state"] != "ok":
        pytest.skip(f"tracing is restricted here: {free['tracing']['what']}")
    assert free["seccomp"]["state"] == "ok"
    code, checks = doctor(before=["/usr/bin/python3", "-c", FORBID_PTRACE])
    assert code == 3
    assert checks["tracing"]["state"] == "problem" and "seccomp" in checks["tracing"]["what"], checks["tracing"]
    assert checks["seccomp"]["state"] == "problem"
    assert "seccomp=unconfined" in checks["seccomp"]["type_next"]


# --- The host's agent, and the daemon.
def test_an_agent_of_this_host_is_found(daemon, tmp_path):
    folder = tmp_path / "segments"

    def state():
        return doctor(f"--daemon={daemon.address}", env={"ROLLCALL_DIR": str(folder)})[1]["agent"]["state"]

    assert state() == "not_applicable"
    agent = Service([BUILD / "bin" / "rollcall-agent", f"--daemon={daemon.address}", f"--dir={folder}",
                     "--host-facts=off"])
    try:
        wait_for(lambda: state() == "ok")
    finally:
        agent.kill()
    assert state() == "not_applicable"


def test_a_daemon_of_the_same_user_answers_with_its_clock_and_release(daemon):
    code, checks = doctor(f"--daemon={daemon.address}")
    assert code == 0, checks
    for name in ("daemon", "clock", "version"):
        assert checks[name]["state"] == "ok", checks[name]


def test_the_environment_names_the_daemon_too():
    assert doctor(env={"ROLLCALL_DAEMON": "127.0.0.1:1"})[1]["daemon"]["state"] == "problem"


def test_tls_with_the_right_and_with_another_authority(start_tls_daemon, pki, tmp_path):
    daemon = start_tls_daemon()
    code, checks = doctor(f"--daemon={daemon.address}", *client(pki, "viewer"))
    assert code == 0, checks
    assert "with TLS" in checks["daemon"]["what"]
    assert checks["certificates"]["state"] == "ok", checks["certificates"]
    other = tmp_path / "other"
    assert rollcall("pki", "init", str(other)).returncode == 0
    _, checks = doctor(f"--daemon={daemon.address}", f"--tls-ca={other}/ca.crt")
    assert checks["daemon"]["state"] == "problem", checks["daemon"]
    assert "authority" in checks["daemon"]["what"], checks["daemon"]
    assert checks["clock"]["state"] == "not_applicable"


def test_a_certificate_that_expires_soon_is_a_warning(start_tls_daemon, pki):
    issued = rollcall("pki", "issue", str(pki), "--role=viewer", "--name=brief", "--days=3")
    assert issued.returncode == 0, issued.stderr
    daemon = start_tls_daemon()
    code, checks = doctor(f"--daemon={daemon.address}", *client(pki, "brief"))
    assert code == 0
    assert checks["certificates"]["state"] == "warning", checks["certificates"]
    assert "rollcall pki renew" in checks["certificates"]["type_next"]


@pytest.mark.skipif(shutil.which("openssl") is None, reason="no openssl to make an expired certificate")
def test_an_expired_certificate_is_a_problem(start_tls_daemon, pki):
    subprocess.run(["openssl", "req", "-new", "-key", pki / "viewer.key", "-subj", "/CN=old", "-out",
                    pki / "old.csr"], check=True, capture_output=True)
    made = subprocess.run(["openssl", "x509", "-req", "-in", pki / "old.csr", "-CA", pki / "ca.crt", "-CAkey",
                           pki / "ca.key", "-days", "-1", "-out", pki / "old.crt"], capture_output=True,
                          text=True, check=False)
    if made.returncode != 0:
        pytest.skip(f"openssl makes no expired certificate: {made.stderr[-200:]}")
    shutil.copy(pki / "viewer.key", pki / "old.key")
    (pki / "old.key").chmod(0o600)
    daemon = start_tls_daemon()
    code, checks = doctor(f"--daemon={daemon.address}", *client(pki, "old"))
    assert code == 3
    assert checks["certificates"]["state"] == "problem" and "expired" in checks["certificates"]["what"]
    assert checks["daemon"]["state"] == "problem"


def test_a_token_of_another_role_is_refused(start_tls_daemon, pki, tmp_path):
    token, file = new_token(tmp_path, "node", "--role=agent", "--host=node-1")
    daemon = start_tls_daemon(f"--token-file={tmp_path / 'tokens'}")
    check = doctor(f"--daemon={daemon.address}", f"--tls-ca={pki}/ca.crt", f"--token-file={file}")[1]["daemon"]
    assert check["state"] == "problem" and "refuses this caller" in check["what"], check
    assert token not in json.dumps(check)


@pytest.mark.long
def test_a_port_that_never_answers_has_a_deadline():
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        begun = time.monotonic()
        _, checks = doctor(f"--daemon=127.0.0.1:{silent.getsockname()[1]}")
        assert checks["daemon"]["state"] == "problem"
        assert time.monotonic() - begun < 40


def test_a_page_instead_of_a_daemon_is_a_problem():
    server = http.server.HTTPServer(("127.0.0.1", 0), http.server.BaseHTTPRequestHandler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        assert doctor(f"--daemon=127.0.0.1:{server.server_port}")[1]["daemon"]["state"] == "problem"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
