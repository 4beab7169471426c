# SPDX-License-Identifier: Apache-2.0
"""What the server sends, and to whom, where the other side is no good daemon."""
import contextlib
import http.server
import os
import threading
import time

import pytest
from rollcall.mcp import daemon_page
from rollcall.mcp.daemon_page import BadAddress, DaemonPage, PageError
from rollcall.mcp.server import Tools
from rollcall.mcp.token_file import TokenFileError, read_token


class Stranger(http.server.BaseHTTPRequestHandler):
    """Answers each request as the server's `reply` says, and keeps what it got."""

    def do_GET(self):
        self.server.got.append((self.command, self.path, self.headers.get("Authorization")))
        self.server.reply(self)

    do_POST = do_PUT = do_DELETE = do_GET

    def log_message(self, *words):
        pass


@contextlib.contextmanager
def stranger(reply):
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Stranger) as server:
        server.daemon_threads, server.got, server.reply = True, [], reply
        server.url = f"http://127.0.0.1:{server.server_port}"
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


def says(status, body=b"{}", **headers):
    def reply(request):
        request.send_response(status)
        for name, value in headers.items():
            request.send_header(name, value)
        request.end_headers()
        request.wfile.write(body)
    return reply


@pytest.fixture
def token(tmp_path):
    file = tmp_path / "token"
    file.write_text("rollcall_secret\n")
    file.chmod(0o600)
    return file


def test_all_questions_are_gets_that_only_read(token):
    with stranger(says(200, b'{"stack_tree": {"nodes": [{}, {"frame": "main"}]}}')) as server:
        tools = Tools(DaemonPage(f"{server.url}/below/", str(token)))
        tools.list_jobs()
        tools.get_job("a b&c")
        tools.list_incidents(since="2026-11-20T13:00:00Z")
        tools.get_incident("../status")
        tools.get_stacks("i")
        assert [(method, path) for method, path, _ in server.got] == [
            ("GET", "/below/api/v1/jobs?offset=0&limit=50"), ("GET", "/below/api/v1/job?job=a+b%26c"),
            ("GET", "/below/api/v1/incidents?offset=0&limit=20&from=2026-11-20T13%3A00%3A00Z"),
            ("GET", "/below/api/v1/incident?id=..%2Fstatus"), ("GET", "/below/api/v1/incident?id=i")]
        assert {sent for _, _, sent in server.got} == {"Bearer rollcall_secret"}


def test_a_redirect_is_not_followed_and_the_token_goes_nowhere_else(token):
    with stranger(says(200)) as other, stranger(says(302, Location=f"{other.url}/api/v1/jobs")) as server:
        with pytest.raises(PageError, match="follows no address") as failure:
            DaemonPage(server.url, str(token)).get("jobs")
        assert other.url in str(failure.value) and "secret" not in str(failure.value)
        assert len(server.got) == 1 and not other.got


def test_no_proxy_of_the_environment_gets_the_token(token, monkeypatch):
    with stranger(says(200)) as proxy, stranger(says(200)) as server:
        for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):
            monkeypatch.setenv(name, proxy.url)
        assert DaemonPage(server.url, str(token)).get("jobs") == {}
        assert len(server.got) == 1 and not proxy.got


def test_a_daemon_that_does_not_answer_costs_bounded_time(monkeypatch):
    monkeypatch.setattr(daemon_page, "STEP_SECONDS", 0.2)
    release = threading.Event()
    with stranger(lambda request: release.wait(30)) as server:
        with pytest.raises(PageError, match="did not answer within"):
            DaemonPage(server.url).get("jobs")
        release.set()


@pytest.mark.parametrize("begin", [b"HTTP/1.1 200 OK\r\nX: ", b"HTTP/1.1 200 OK\r\n\r\n"], ids=["headers", "body"])
def test_an_answer_that_comes_byte_by_byte_costs_bounded_time(begin, monkeypatch):
    monkeypatch.setattr(daemon_page, "TOTAL_SECONDS", 0.3)
    release = threading.Event()

    def reply(request):
        request.wfile.write(begin)
        with contextlib.suppress(OSError):
            while not release.wait(0.02):
                request.wfile.write(b" ")

    with stranger(reply) as server:
        with pytest.raises(PageError, match="did not finish its answer"):
            DaemonPage(server.url).get("jobs")
        release.set()


def test_a_chunk_that_is_cut_by_the_limit_is_no_answer(monkeypatch):
    monkeypatch.setattr(daemon_page, "TOTAL_SECONDS", 0.3)
    release = threading.Event()

    def reply(request):
        request.wfile.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        release.wait(30)

    with stranger(reply) as server:
        with pytest.raises(PageError, match="did not finish its answer"):
            DaemonPage(server.url).get("jobs")
        release.set()


def test_a_chunk_without_a_size_is_no_answer():
    with stranger(says(200, b"what\r\n", **{"Transfer-Encoding": "chunked"})) as server:
        server.RequestHandlerClass.protocol_version = "HTTP/1.1"
        with pytest.raises(PageError, match="cannot reach the daemon's page"):
            DaemonPage(server.url).get("jobs")


def test_the_time_to_connect_counts(monkeypatch):
    monkeypatch.setattr(daemon_page, "TOTAL_SECONDS", 0.1)
    connect = daemon_page.http.client.HTTPConnection.connect

    def connect_slowly(connection):
        time.sleep(0.5)
        connect(connection)

    monkeypatch.setattr(daemon_page.http.client.HTTPConnection, "connect", connect_slowly)
    with stranger(says(200)) as server:
        with pytest.raises(PageError, match="did not finish its answer"):
            DaemonPage(server.url).get("jobs")
        assert not server.got


def test_an_answer_without_end_is_left(monkeypatch):
    monkeypatch.setattr(daemon_page, "MAX_BYTES", 1 << 20)

    def reply(request):
        request.send_response(200)
        request.end_headers()
        with contextlib.suppress(OSError):
            while True:
                request.wfile.write(b" " * (1 << 16))

    with stranger(reply) as server, pytest.raises(PageError, match="more than 1 MiB"):
        DaemonPage(server.url).get("jobs")


@pytest.mark.parametrize("status, body, words", [
    (200, b"<html>", "not as a daemon's page does"),
    (200, b"[]", "not as a daemon's page does"),
    (401, b"who are you", "--token-file=FILE"),
    (403, b"no", "--role=viewer"),
    (429, b"wait", "wait a minute"),
    (503, b"busy", "try again later"),
    (404, 'a\u202e"\x1b[2J'.encode(), 'which are data: "a\ufffd\\"\ufffd[2J"'),
    (500, b"x" * 9_000, "x" * 600 + '"')])
def test_errors_say_what_to_do_and_quote_the_other_side(status, body, words):
    with stranger(says(status, body)) as server, pytest.raises(PageError) as failure:
        DaemonPage(server.url).get("jobs")
    assert words in str(failure.value) and len(str(failure.value)) < 1_000


def test_a_token_is_read_again_for_each_request(token):
    with stranger(says(200)) as server:
        page = DaemonPage(server.url, str(token))
        page.get("jobs")
        token.write_text("rollcall_renewed")
        page.get("jobs")
        token.chmod(0o640)
        os.chown(token, 65534, -1) if os.geteuid() == 0 else None
        with pytest.raises(PageError, match="a group of users can read"):
            page.get("jobs")
        assert [sent for _, _, sent in server.got] == ["Bearer rollcall_secret", "Bearer rollcall_renewed"]


@pytest.mark.parametrize("url, usable", [
    ("http://127.0.0.1:7656", True), ("http://[::1]:7656", True), ("http://localhost", True), ("https://node-1", True),
    ("http://node-1", False), ("http://127.0.0.1.example", False), ("http://10.0.0.1:7656", False)])
def test_a_token_crosses_the_network_by_tls_only(url, usable, token):
    DaemonPage(url)
    with contextlib.nullcontext() if usable else pytest.raises(BadAddress):
        DaemonPage(url, str(token))


def test_a_token_goes_to_no_daemon_that_nobody_named(token):
    assert DaemonPage().url == "http://127.0.0.1:7656"
    with pytest.raises(BadAddress, match="--url=https://HOST:7656 --token-file=FILE"):
        DaemonPage(token_file=str(token))


@pytest.mark.parametrize("flag", ["tls_ca", "tls_cert", "tls_key"])
@pytest.mark.parametrize("url", [None, "http://127.0.0.1:1", "http://node-1"])
def test_files_of_tls_need_https(flag, url):
    words = f"--{flag.replace('_', '-')} needs an address with https://"
    with pytest.raises(BadAddress, match=words) as failure:
        DaemonPage(url, **{flag: "file"})
    assert f"ROLLCALL_{flag.upper()}" in str(failure.value)


@pytest.mark.parametrize("content, words", [
    (b"", "is empty"), (b"two tokens", "exactly one"), (b"x" * 7_000, "exactly one"), (b"\xff", "exactly one"),
    (b"a\r\nX: y", "exactly one")])
def test_a_token_file_holds_one_token(content, words, token):
    token.write_bytes(content)
    with pytest.raises(TokenFileError, match=words):
        read_token(token)


def test_a_link_into_a_volume_of_kubernetes_may_be_readable(tmp_path):
    (tmp_path / "..data").mkdir()
    (tmp_path / "..data" / "token").write_text("rollcall_mounted")
    (tmp_path / "..data" / "token").chmod(0o644)
    (tmp_path / "token").symlink_to("..data/token")
    assert read_token(str(tmp_path / "token")) == "rollcall_mounted"
