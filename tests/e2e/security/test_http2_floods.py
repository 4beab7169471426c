# SPDX-License-Identifier: Apache-2.0
"""What strangers can cost the daemon with one connection or many, before it knows who they are: floods of HTTP/2
frames, each of which takes memory or time in gRPC."""
import os
import pathlib
import re
import socket
import ssl
import struct
import threading
import time

import pytest
from conftest import client, long, rollcall

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RST_STREAM, SETTINGS, PING, WINDOW_UPDATE, CONTINUATION = 0, 1, 3, 4, 6, 8, 9
ACK, END_HEADERS = 1, 4
MOST_MIB = 64  # more than without the flood, as docs/security.md says
FLOOD_SECONDS = 10
FLOOD_BYTES = 64 << 20


def frame(kind, flags=0, stream=0, content=b""):
    return struct.pack(">I", len(content))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + content


def literal(name, value, indexed):
    """A header of HPACK without Huffman's code; `indexed`: into the table."""
    def text(what):
        if len(what) < 127:
            return bytes([len(what)]) + what
        rest, out = len(what) - 127, bytes([127])
        while rest >= 128:
            out, rest = out + bytes([rest % 128 + 128]), rest // 128
        return out + bytes([rest]) + what
    return (b"\x40" if indexed else b"\x00") + text(name) + text(value)


# POST, http, /rollcall.v1.Query/GetStatus, an authority and what gRPC wants.
CALL_OF_THIS_USER = (
    b"\x83\x86" + literal(b":path", b"/rollcall.v1.Query/GetStatus", False) + literal(b":authority", b"x", False)
    + literal(b"content-type", b"application/grpc", False) + literal(b"te", b"trailers", False))
# The daemon knows its own user on this host, but a wrong token makes a stranger.
CALL = CALL_OF_THIS_USER + literal(b"authorization", b"Bearer guessed", False)
LARGE = literal(b"x", b"v" * 3900, True)  # an entry that nearly fills the table of 4,096 bytes
NEWEST = b"\xbe"  # refers to it


def streams():
    return iter(range(1, 1 << 30, 2))


def references(acknowledges):
    """A header that refers to an entry of 4 KiB again and again: each byte becomes 4 KiB, 16 MiB in all, which is
    what gRPC allows before its settings are acknowledged."""
    for number in streams():
        if number == 1:
            yield frame(HEADERS, END_HEADERS, number, CALL + LARGE)
        else:
            yield frame(HEADERS, END_HEADERS, number, CALL + NEWEST * 4000)


def rapid_resets(acknowledges):
    for number in streams():
        yield frame(HEADERS, END_HEADERS, number, CALL) + frame(RST_STREAM, 0, number, b"\0\0\0\x08")


def pings(acknowledges):
    while True:
        yield frame(PING, 0, 0, b"12345678") * 500


def open_streams(acknowledges, call=CALL):
    for number in streams():
        yield frame(HEADERS, END_HEADERS, number, call + literal(b"pad", b"p" * 3000, False))


def calls_of_this_user(acknowledges):
    return open_streams(acknowledges, CALL_OF_THIS_USER)


def continuations(acknowledges):
    yield frame(HEADERS, 0, 1, CALL + b"\x00\x01y\x7f\xff\xff\xff\x7f")  # a value of 256 MiB begins
    while True:
        yield frame(CONTINUATION, 0, 1, b"v" * 16000)


def settings(acknowledges):
    while True:
        yield frame(SETTINGS, 0, 0, struct.pack(">HI", 4, 65535)) * 500


def empty_data(acknowledges):
    yield frame(HEADERS, END_HEADERS, 1, CALL)
    while True:
        yield frame(DATA, 0, 1) * 500


def long_frame(acknowledges):
    yield struct.pack(">I", 0xffffff)[1:] + bytes([DATA, 0]) + struct.pack(">I", 1)
    while True:
        yield b"d" * 65536


FLOODS = [references, rapid_resets, pings, open_streams, continuations, settings, empty_data, long_frame]


def connect(daemon, with_tls, protocol="h2"):
    plain = socket.create_connection(("127.0.0.1", int(daemon.address.rpartition(":")[2])), timeout=120)
    if not with_tls:
        return plain
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_alpn_protocols([protocol])
    return context.wrap_socket(plain)


def begin(connection, acknowledges):
    """The start of a connection, as a client does it. Returns once the daemon has sent its settings."""
    connection.sendall(PREFACE + frame(SETTINGS))
    head = connection.recv(65536)
    assert head[3] == SETTINGS, head
    if acknowledges:
        connection.sendall(frame(SETTINGS, ACK))


def memory_mib(pid, which):
    text = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(re.search(rf"^{which}:\s+(\d+) kB", text, re.M)[1]) / 1024


def count_threads(pid):
    return len(list(pathlib.Path(f"/proc/{pid}/task").iterdir()))


def forget_peak(pid):
    pathlib.Path(f"/proc/{pid}/clear_refs").write_text("5")


def send(connections, flood, acknowledges):
    """Sends until the daemon has closed all of them, or so much is sent. Returns whether it has closed them."""
    sources = {connection: flood(acknowledges) for connection in connections}
    end, sent = time.monotonic() + FLOOD_SECONDS, 0
    while sources and time.monotonic() < end and sent < FLOOD_BYTES:
        for connection in list(sources):
            part = next(sources[connection], None)
            try:
                connection.settimeout(0.5)
                connection.sendall(part)
                sent += len(part)
            except OSError:
                del sources[connection]
    return not sources


@pytest.mark.parametrize("acknowledges", [True, False], ids=["acknowledged", "not-acknowledged"])
@pytest.mark.parametrize("with_tls", [True, long(False)], ids=["tls", "plaintext"])
@pytest.mark.parametrize("flood", FLOODS, ids=lambda flood: flood.__name__)
def test_a_flood_of_frames_ends_and_costs_little(flood, with_tls, acknowledges, start_daemon, start_tls_daemon, pki):
    daemon = start_tls_daemon() if with_tls else start_daemon()
    pid = daemon.process.pid
    connections = [connect(daemon, with_tls) for _ in range(2)]
    for connection in connections:
        begin(connection, acknowledges)
    forget_peak(pid)
    before = memory_mib(pid, "VmRSS")
    closed = send(connections, flood, acknowledges)
    time.sleep(0.5)
    assert memory_mib(pid, "VmHWM") - before < MOST_MIB
    assert closed, "the daemon goes on to read the flood"
    for connection in connections:
        connection.close()
    flags = client(pki, "viewer") if with_tls else []
    done = rollcall("status", f"--daemon=localhost:{daemon.address.rpartition(':')[2]}", *flags)
    assert done.returncode == 0, done.stdout + done.stderr


MANY = 64
MANY_SECONDS = 4
MOST_THREADS = 20 + 4 * os.cpu_count()  # more than without strangers: gRPC's, and none for a call of theirs
PART = 8192


def window_updates(acknowledges):
    while True:
        yield frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", 1)) * 500


def few_references(acknowledges):
    """As references(), with as many fields as the daemon allows."""
    for number in streams():
        yield frame(HEADERS, END_HEADERS, number, CALL + (LARGE if number == 1 else NEWEST * 26))


def silence(acknowledges):
    return iter(())


MORE_OF_MANY = [few_references, pings, open_streams, continuations, settings, empty_data, long_frame, window_updates,
                silence]


class Strangers:
    """Many clients, each with a thread: all send the same at once, and connect again when the daemon has ended
    their connection."""

    def __init__(self, daemon, with_tls, flood, count=MANY, seconds=MANY_SECONDS):
        self.daemon, self.with_tls, self.seconds = daemon, with_tls, seconds
        self.parts, self.ended, self.start = self._parts(flood), 0, threading.Barrier(count + 1)
        self.threads = [threading.Thread(target=self._run) for _ in range(count)]
        for thread in self.threads:
            thread.start()

    @staticmethod
    def _parts(flood):
        content = b""
        for part in flood(False):
            content += part
            if len(content) > 1 << 20:
                break
        return [content[at:at + PART] for at in range(0, len(content), PART)]

    def begin(self):
        self.start.wait(60)

    def end(self):
        for thread in self.threads:
            thread.join()

    def _connect(self):
        try:
            connection = connect(self.daemon, self.with_tls)
            begin(connection, False)
            return connection
        except (OSError, AssertionError):
            return None  # the daemon serves others first

    def _run(self):
        connection = self._connect()
        self.start.wait(60)
        until = time.monotonic() + self.seconds
        while time.monotonic() < until:
            if connection is not None and self._flood(connection, until):
                self.ended += 1
            connection = self._connect()
        if connection is not None:
            connection.close()

    def _flood(self, connection, until):
        """Whether the daemon has ended the connection."""
        with connection:
            try:
                for part in self.parts:
                    connection.settimeout(max(0.1, until - time.monotonic()))
                    connection.sendall(part)
                while connection.recv(65536):
                    pass
            except socket.timeout:
                return False
            except OSError:
                pass
        return True


@pytest.mark.parametrize("with_tls", [True, False], ids=["tls", "plaintext"])
@pytest.mark.parametrize("flood", [rapid_resets, *map(long, MORE_OF_MANY)], ids=lambda flood: flood.__name__)
def test_many_strangers_together_cost_little_and_a_newcomer_is_served(flood, with_tls, start_daemon, start_tls_daemon,
                                                                      pki):
    daemon = start_tls_daemon() if with_tls else start_daemon()
    pid, flags = daemon.process.pid, client(pki, "viewer") if with_tls else []
    address = f"--daemon=localhost:{daemon.address.rpartition(':')[2]}"
    assert rollcall("status", address, *flags).returncode == 0
    forget_peak(pid)
    before, threads = memory_mib(pid, "VmRSS"), count_threads(pid)
    strangers = Strangers(daemon, with_tls, flood)
    strangers.begin()
    served, most_threads = 0, 0
    while any(thread.is_alive() for thread in strangers.threads):
        done = rollcall("status", address, *flags)
        assert done.returncode == 0, done.stdout + done.stderr
        served, most_threads = served + 1, max(most_threads, count_threads(pid))
    strangers.end()
    assert served > 0
    assert memory_mib(pid, "VmHWM") - before < MOST_MIB
    assert most_threads - threads < MOST_THREADS
    assert flood is silence or strangers.ended > 0, "the daemon goes on to read the flood"


MOST_OF_KNOWN_MIB = 128  # of a caller whom the daemon knows, as docs/security.md says
MOST_ANSWERS = 64  # at a time


@pytest.mark.parametrize("with_tls", [True, long(False)], ids=["tls", "plaintext"])
def test_calls_of_a_known_caller_share_a_few_threads(with_tls, start_daemon, start_tls_daemon, pki):
    daemon = start_tls_daemon() if with_tls else start_daemon()
    pid, flags = daemon.process.pid, client(pki, "viewer") if with_tls else []
    address = f"--daemon=localhost:{daemon.address.rpartition(':')[2]}"
    assert rollcall("status", address, *flags).returncode == 0
    forget_peak(pid)
    before, threads, most_threads = memory_mib(pid, "VmRSS"), count_threads(pid), 0
    callers = Strangers(daemon, with_tls, calls_of_this_user)
    callers.begin()
    while any(thread.is_alive() for thread in callers.threads):
        done = rollcall("status", address, *flags)
        assert done.returncode == 0, done.stdout + done.stderr
        most_threads = max(most_threads, count_threads(pid))
    callers.end()
    assert memory_mib(pid, "VmHWM") - before < MOST_OF_KNOWN_MIB
    assert most_threads - threads < MOST_ANSWERS + MOST_THREADS


def client_hello():
    """The first message of a handshake."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_alpn_protocols(["h2"])
    with pytest.raises(ssl.SSLWantReadError):
        context.wrap_bio(incoming, outgoing).do_handshake()
    return outgoing.read()


SLOW_HEAD = b"GET /api/v1/jobs HTTP/1.1\r\nHost: localhost\r\nAccept: " + b"a" * 7900 + b"\r\nCookie: " + b"c" * 7900
SLOW_BODY = b"POST /login HTTP/1.1\r\nHost: localhost\r\nContent-Length: 65000\r\n\r\n" + b"b" * 64000


@pytest.mark.parametrize("what", ["handshakes", long("handshakes of the page"), long("heads"), "bodies"])
def test_hundreds_that_say_half_of_something_cost_little_and_a_newcomer_is_served(what, start_tls_daemon, start_daemon,
                                                                                  pki):
    is_tls = what.startswith("handshakes")
    daemon = start_tls_daemon() if is_tls else start_daemon()
    flags = client(pki, "viewer") if is_tls else []
    page_port = int(daemon.page_port if is_tls else daemon.page.rpartition(":")[2])
    port = int(daemon.address.rpartition(":")[2])
    content = {"heads": SLOW_HEAD, "bodies": SLOW_BODY}.get(what) or client_hello()
    forget_peak(daemon.process.pid)
    before = memory_mib(daemon.process.pid, "VmRSS")
    strangers = []
    for _ in range(600):
        stranger = socket.create_connection(("127.0.0.1", port if what == "handshakes" else page_port), timeout=20)
        stranger.setblocking(False)
        try:
            stranger.send(content)
        except OSError:
            pass  # the page has closed it already
        strangers.append(stranger)
    # A client gives a handshake 5 s. It comes from the address of the strangers.
    done = rollcall("status", f"--daemon=localhost:{port}", *flags)
    assert done.returncode == 0, done.stdout + done.stderr
    time.sleep(2)
    assert memory_mib(daemon.process.pid, "VmHWM") - before < MOST_MIB
    for stranger in strangers:
        stranger.close()


def test_the_name_of_the_protocol_does_not_matter(start_tls_daemon):
    """gRPC has two of them, and its own clients use this one."""
    daemon = start_tls_daemon()
    connection = connect(daemon, True, protocol="grpc-exp")
    begin(connection, True)
    assert send([connection], continuations, True)


def test_a_client_that_calls_again_and_again_is_served(start_tls_daemon, pki):
    daemon = start_tls_daemon()
    for _ in range(5):
        done = rollcall("status", f"--daemon=localhost:{daemon.port}", *client(pki, "viewer"))
        assert done.returncode == 0, done.stdout + done.stderr


CONNECT = (b"\x83\x86" + literal(b":path", b"/rollcall.v1.AgentLink/Connect", False)
           + literal(b":authority", b"x", False) + literal(b"content-type", b"application/grpc", False)
           + literal(b"te", b"trailers", False))
HELLO = b"\x0a\x09" + b"\x08\x01" + b"\x12\x01x" + b"\x1a\x02vm"  # protocol 1, id, host


class UnfinishedMessages:
    """An agent whose streams each send nearly all of a message of 60 MiB, as far as the daemon lets them."""
    SIZE = 60 << 20

    def __init__(self, connection, streams):
        self.connection, self.buffer, self.initial = connection, b"", 65535
        self.windows = {0: 65535}
        self.left = {2 * number + 1: self.SIZE - 1 for number in range(streams)}
        for stream in self.left:
            self.windows[stream] = self.initial
            connection.sendall(frame(HEADERS, END_HEADERS, stream, CONNECT))
            self.send(stream, b"\0" + struct.pack(">I", len(HELLO)) + HELLO)
            self.send(stream, b"\0" + struct.pack(">I", self.SIZE))

    def send(self, stream, content):
        for window in (0, stream):
            self.windows[window] -= len(content)
        self.connection.sendall(frame(DATA, 0, stream, content))

    def read(self):
        """False: the daemon has closed the connection."""
        received = self.connection.recv(65536)
        self.buffer += received
        while len(self.buffer) >= 9 and len(self.buffer) >= 9 + (size := int.from_bytes(self.buffer[:3], "big")):
            kind, flags, stream = self.buffer[3], self.buffer[4], int.from_bytes(self.buffer[5:9], "big")
            content, self.buffer = self.buffer[9:9 + size], self.buffer[9 + size:]
            if kind == WINDOW_UPDATE:
                self.windows[stream] = self.windows.get(stream, self.initial) + int.from_bytes(content, "big")
            if kind == SETTINGS and not flags & ACK:
                for name, value in struct.iter_unpack(">HI", content):
                    if name == 4:  # SETTINGS_INITIAL_WINDOW_SIZE
                        for known in self.left:
                            self.windows[known] += value - self.initial
                        self.initial = value
            if kind == PING and not flags & ACK:
                self.connection.sendall(frame(PING, ACK, 0, content))
        return received != b""

    def go_on(self):
        """Sends what it may. False: the connection has ended."""
        try:
            self.connection.settimeout(20)
            for stream, left in self.left.items():
                part = min(16384, left, self.windows[0], self.windows[stream])
                if part > 0:
                    self.send(stream, b"m" * part)
                    self.left[stream] -= part
            self.connection.settimeout(0.01)
            return self.read()
        except socket.timeout:
            return True
        except OSError:
            return False


@pytest.mark.long
def test_unfinished_messages_of_agents_have_a_sum(start_daemon):
    """2,400 MiB of them, of four connections."""
    daemon = start_daemon()
    agents = []
    for _ in range(4):
        connection = connect(daemon, False)
        connection.sendall(PREFACE + frame(SETTINGS) + frame(SETTINGS, ACK))
        agents.append(UnfinishedMessages(connection, 10))
    end = time.monotonic() + 60
    while agents and time.monotonic() < end:
        agents = [agent for agent in agents if agent.go_on()]
    assert memory_mib(daemon.process.pid, "VmHWM") < 1500
    assert len(agents) < 4, "none of them was ended"
    done = rollcall("status", f"--daemon={daemon.address}")
    assert done.returncode == 0, done.stdout + done.stderr
