# SPDX-License-Identifier: Apache-2.0
"""Unwanted clients of the daemon's port."""
import os
import pathlib
import resource
import socket
import subprocess
import sys
import time
import urllib.request

import pytest
from conftest import AS_NOBODY, BUILD, PATIENCE, ROLLCALL, VICTIMS, Service, can_be_others, long, wait_for

# Listens, says its port, and then what it gets.
EAR = """
import socket, sys
ear = socket.create_server(("127.0.0.1", 0))
print(ear.getsockname()[1], flush=True)
while True:
    connection, _ = ear.accept()
    connection.settimeout(10)
    try:
        print(len(connection.recv(4096)), flush=True)
    except OSError:
        print(0, flush=True)
"""


def status(address, *flags, env=None):
    return subprocess.run([ROLLCALL, "status", f"--daemon={address}", *flags], text=True,
                          capture_output=True, timeout=120, env={**os.environ, **(env or {})})


def port_of(address):
    return int(address.rpartition(":")[2])


def connect_in_silence(address, count):
    clients = []
    for _ in range(count):
        client = socket.socket()
        client.settimeout(0.05)
        try:
            client.connect(("127.0.0.1", port_of(address)))
        except OSError:
            pass  # the queue of the system is full
        clients.append(client)
    return clients


@pytest.mark.parametrize("when", ["at the start", long("later")])
def test_connections_that_say_nothing_do_not_end_the_service(start_daemon, tmp_path, when):
    few = 200
    if when == "later":
        daemon = start_daemon()
        resource.prlimit(daemon.process.pid, resource.RLIMIT_NOFILE, (few, few))
    else:
        daemon = Service(["prlimit", f"--nofile={few}:{few}", BUILD / "bin" / "rollcalld",
                          "--listen=127.0.0.1:0", "--http=127.0.0.1:0",
                          f"--report-dir={tmp_path / 'reports'}"])
        said = daemon.read_until(r"agents on (127\.0\.0\.1:\d+), pages on (http://127\.0\.0\.1:\d+)/")
        daemon.address, daemon.page = said.groups()
    clients = connect_in_silence(daemon.address, 2 * few)
    try:
        assert daemon.read_until(r"refused: (.*)")
        # Silent connections make room after half a second, also while they are too many.
        wait_for(lambda: status(daemon.address).returncode == 0)
        assert urllib.request.urlopen(f"{daemon.page}/healthz", timeout=120).read() == b"ok\n"
    finally:
        for client in clients:
            client.close()
        if when != "later":
            daemon.kill()


@pytest.mark.long
def test_a_daemon_without_a_descriptor_says_so_and_goes_on(start_daemon):
    daemon = start_daemon()
    descriptors = f"/proc/{daemon.process.pid}/fd"
    before = len(os.listdir(descriptors))
    held = [socket.create_connection(("127.0.0.1", port_of(daemon.page))) for _ in range(2)]
    for page in held:  # the page closes them after a while; it can still answer them
        page.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n")
    while len(os.listdir(descriptors)) < before + len(held):
        time.sleep(0.01)
    usual = resource.prlimit(daemon.process.pid, resource.RLIMIT_NOFILE)
    # The numbers below three are in use, so none is free. What is open stays open.
    resource.prlimit(daemon.process.pid, resource.RLIMIT_NOFILE, (3, usual[1]))
    try:
        client = socket.create_connection(("127.0.0.1", port_of(daemon.address)))
        assert daemon.read_until(r"all \d+ file descriptors of this process are in use")
        time.sleep(6)  # a shorter lack is not an illness
        held[0].sendall(b"\r\n")
        assert b" 503 " in held[0].recv(100)
    finally:
        resource.prlimit(daemon.process.pid, resource.RLIMIT_NOFILE, usual)
    assert status(daemon.address).returncode == 0
    assert urllib.request.urlopen(f"{daemon.page}/healthz", timeout=120).read() == b"ok\n"
    client.close()


def test_nothing_goes_to_another_user_who_took_the_port(tmp_path):
    if os.geteuid() != 0 or not can_be_others():
        pytest.skip("only root can become another user")
    token = tmp_path / "token"
    token.write_text("rollcall_0123456789\n")
    token.chmod(0o600)
    ear = subprocess.Popen([sys.executable, "-c", EAR], user=65534, group=65534, cwd="/",
                           stdout=subprocess.PIPE, text=True)
    try:
        address = f"127.0.0.1:{ear.stdout.readline().strip()}"
        refused = status(address, f"--token-file={token}")
        assert refused.returncode != 0
        assert "uid 65534" in refused.stderr and "--daemon-user=65534" in refused.stderr
        assert ear.stdout.readline().strip() == "0", "bytes that the stranger got"
        agent = Service([BUILD / "bin" / "rollcall-agent", f"--daemon={address}",
                         f"--dir={tmp_path / 'segments'}"])
        try:
            agent.read_until("neither you nor root")
        finally:
            agent.kill()
        assert ear.stdout.readline().strip() == "0", "bytes that the stranger got"
        status(address, "--daemon-user=65534")
        while (got := ear.stdout.readline().strip()) == "0":  # tries of the agent
            pass
        assert int(got) > 0, "the user of this name is believed"
    finally:
        ear.kill()
        ear.wait()


def test_a_proxy_gets_nothing_that_stays_on_this_host(daemon):
    ear = socket.create_server(("127.0.0.1", 0))
    ear.settimeout(0.2)
    proxy = f"http://127.0.0.1:{ear.getsockname()[1]}"
    answer = status(daemon.address, env={"http_proxy": proxy, "https_proxy": proxy,
                                         "grpc_proxy": proxy, "no_proxy": ""})
    assert answer.returncode == 0, answer.stderr
    with pytest.raises(TimeoutError):
        ear.accept()


def test_a_second_daemon_does_not_take_a_living_socket(start_daemon, tmp_path):
    path = pathlib.Path(f"/tmp/rollcall-test-{os.getpid()}.sock")
    arguments = [BUILD / "bin" / "rollcalld", f"--listen=unix:{path}", "--http=none"]
    first = Service([*arguments, f"--report-dir={tmp_path / 'first'}"])
    try:
        first.read_until("agents on unix:")
        second = subprocess.run([*arguments, f"--report-dir={tmp_path / 'second'}"],
                                capture_output=True, text=True, timeout=120)
        assert second.returncode == 1 and "a process listens there already" in second.stderr
        assert status(f"unix:{path}").returncode == 0
    finally:
        first.kill()
    assert not path.exists()


def test_an_address_without_a_port_is_a_mistake():
    answer = status("daemon.example")
    assert answer.returncode != 0 and "--daemon=HOST:7655" in answer.stderr


def test_a_strangers_message_about_a_job_does_not_end_it(daemon, tmp_path):
    job = subprocess.Popen(
        [ROLLCALL, "run", "--sim", f"--daemon={daemon.address}", "--hang-after=3s",
         "--on-hang=abort", f"--report-dir={tmp_path / 'here'}", "--", VICTIMS / "ranks", "-n", "4",
         "--", VICTIMS / "healthy_mix", "2000"],
        env={"ROLLCALL_JOB": "a-job"}, stderr=subprocess.PIPE, text=True)
    # The stranger says that the job has 128 ranks, and that one of them hangs.
    stranger = subprocess.Popen(
        [BUILD / "tests" / "big_job", f"--daemon={daemon.address}", "--job=a-job", "--ranks=128",
         "--hang-rank=3", "--hang-after=1", "--tick=0.1", "--seconds=60"],
        stdout=subprocess.DEVNULL)
    try:
        said = job.communicate(timeout=120)[1]
    finally:
        stranger.kill()
        stranger.wait()
    assert "rank 3" not in said, "a hang of another job of this name was printed"
    assert job.returncode == 0


# Asks for the page's jobs from a port that somebody else has for a connection to another address.
SAME_PORT = """
import socket, ssl, struct, sys
own, port = map(int, sys.argv[1:])
plain = socket.socket()
plain.setsockopt(socket.IPPROTO_IP, 24, 1)  # IP_BIND_ADDRESS_NO_PORT
plain.setsockopt(socket.IPPROTO_IP, 51, struct.pack("I", own << 16 | own))  # IP_LOCAL_PORT_RANGE
plain.bind(("127.0.0.1", 0))
plain.connect(("127.0.0.2", port))
context = ssl.create_default_context()
context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
with context.wrap_socket(plain) as page:
    page.sendall(b"GET /api/v1/jobs HTTP/1.1\\r\\nHost: 127.0.0.2\\r\\nConnection: close\\r\\n\\r\\n")
    print(page.recv(4096).split(b"\\r\\n")[0].decode())
"""


@pytest.mark.skipif(not can_be_others(), reason="needs root, in a user namespace with other users")
def test_another_user_with_the_owners_port_is_not_the_owner(tmp_path):
    pki = tmp_path / "pki"
    for command in (["init", pki], ["issue", pki, "--role=daemon", "--host=127.0.0.1"]):
        subprocess.run([ROLLCALL, "pki", *command], check=True, capture_output=True)
    daemon = Service([BUILD / "bin" / "rollcalld", "--listen=127.0.0.1:0", "--http=0.0.0.0:0",
                      f"--tls-cert={pki}/daemon.crt", f"--tls-key={pki}/daemon.key",
                      f"--tls-client-ca={pki}/ca.crt", f"--report-dir={tmp_path / 'reports'}"])
    try:
        port = int(daemon.read_until(r"pages on https://[^ ]*:(\d+)/").group(1))
        owner = socket.create_connection(("127.0.0.1", port))  # root's, and open meanwhile
        own_port = str(owner.getsockname()[1])
        asked = subprocess.run([*AS_NOBODY, "/usr/bin/python3", "-c", SAME_PORT, own_port, str(port)],
                               capture_output=True, text=True, timeout=120, check=False)
        owner.close()
    finally:
        daemon.kill()
    if "Protocol not available" in asked.stderr or "Address already in use" in asked.stderr:
        pytest.skip("needs IP_LOCAL_PORT_RANGE of Linux 6.3")
    assert asked.stdout.strip().endswith("401 Unauthorized"), asked


# Holds as many connections as it can, and opens closed ones again, until its input ends.
CROWD = """
import select, socket, sys
port, most = map(int, sys.argv[1:])
held = {}
while not select.select([sys.stdin], [], [], 0)[0]:
    while len(held) < most:
        one = socket.socket()
        one.setblocking(False)
        one.connect_ex(("127.0.0.1", port))
        held[one.fileno()] = one
    for fd in select.select(list(held), [], [], 0.05)[0]:
        try:
            if held[fd].recv(4096):
                continue
        except BlockingIOError:
            continue
        except OSError:
            pass
        held.pop(fd).close()
"""


@pytest.mark.skipif(not can_be_others(), reason="needs root, in a user namespace with other users")
def test_another_user_cannot_take_all_places(tmp_path):
    daemon = Service(["prlimit", "--nofile=600:600", BUILD / "bin" / "rollcalld",
                      "--listen=127.0.0.1:0", "--http=none", f"--report-dir={tmp_path / 'reports'}"])
    address = daemon.read_until(r"agents on (127\.0\.0\.1:\d+)").group(1)
    crowd = subprocess.Popen([*AS_NOBODY, "/usr/bin/python3", "-c", CROWD, str(port_of(address)),
                              "800"], stdin=subprocess.PIPE)
    try:
        daemon.read_until("too many of this address")
        for _ in range(4):
            answer = status(address)
            assert answer.returncode == 0, answer.stderr
    finally:
        crowd.stdin.close()
        crowd.wait(PATIENCE)
        daemon.kill()
