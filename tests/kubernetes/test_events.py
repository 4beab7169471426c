# SPDX-License-Identifier: Apache-2.0
"""A verdict becomes an Event on the culprit's pod: the real daemon, a real hang, and an API server that
takes what Kubernetes takes (POST /api/v1/namespaces/NAMESPACE/events, a bearer token, a valid Event)."""
import http.server
import json
import os
import re
import ssl
import subprocess
import threading
import time

import pytest
from conftest import BUILD, ROLLCALL, check, find, render, write_secret

pytestmark = pytest.mark.long
POD_UID = "6f1c2a34-0b5d-4e6f-8a9b-0123456789ab"
TOKEN = "eyJhbGciOiJSUzI1NiJ9.token-of-the-daemon.sig"


class ApiServer:
    """Keeps what it was sent: (status, namespace, event). `refusals`: answers before it takes one."""

    def __init__(self, tls, refusals=()):
        self.seen, names, left = [], set(), list(refusals)
        server = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                place = re.fullmatch(r"/api/v1/namespaces/([a-z0-9-]+)/events", self.path)
                event = json.loads(body)
                if self.headers["Authorization"] != f"Bearer {TOKEN}":
                    status = 401
                elif place is None or event["metadata"]["namespace"] != place[1]:
                    status = 400
                elif left:
                    status = left.pop(0)
                elif event["metadata"]["name"] in names:
                    status = 409
                else:
                    status = 201
                    names.add(event["metadata"]["name"])
                server.seen.append((status, event))
                self.send_response(status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(tls / "tls.crt", tls / "tls.key")
        self.http.socket = context.wrap_socket(self.http.socket, server_side=True)
        self.url = f"https://127.0.0.1:{self.http.server_port}"
        threading.Thread(target=self.http.serve_forever, daemon=True).start()

    def taken(self):
        return [event for status, event in self.seen if status == 201]


@pytest.fixture
def tls(tmp_path):
    return write_secret(render({"injection": {"mode": "webhook"}}), "rollcall-webhook-tls", tmp_path / "tls")


@pytest.fixture
def start(tmp_path, tls):
    """start(api_server): a daemon that sends Events there, and a job in which rank 3 stops."""
    running = []

    def run(api_server):
        account = tmp_path / "account"
        account.mkdir()
        (account / "token").touch(mode=0o600)
        (account / "token").write_text(TOKEN)
        (account / "ca.crt").write_bytes((tls / "ca.crt").read_bytes())
        routes = tmp_path / "routes.yaml"
        routes.write_text("receivers:\n  - name: pods\n    kind: kubernetes\n"
                          f"    file: {account}/token\n    url: {api_server.url}\n"
                          "routes:\n  - to: [pods]\n")
        daemon = subprocess.Popen(
            [BUILD / "bin" / "rollcalld", "--config=none", "--listen=127.0.0.1:0", "--http=127.0.0.1:0",
             "--hang-after=3s", f"--report-dir={tmp_path / 'reports'}", f"--alert-routes={routes}"],
            stderr=subprocess.PIPE, text=True)
        running.append(daemon)
        lines = []
        for line in daemon.stderr:
            lines.append(line)
            found = re.search(r"agents on (127\.0\.0\.1:\d+)", line)
            if found:
                break
        else:
            raise AssertionError("".join(lines))
        daemon.lines = lines
        threading.Thread(target=lambda: lines.extend(daemon.stderr), daemon=True).start()
        running.append(subprocess.Popen(
            [ROLLCALL, "run", "--sim", f"--daemon={found[1]}", "--http=none",
             f"--report-dir={tmp_path / 'of-run'}", "--", BUILD / "tests" / "ranks", "-n", "4",
             "--keep-going", "--", BUILD / "tests" / "one_rank_stops_calling"],
            env={**os.environ, "ROLLCALL_JOB": "pretrain", "POD_NAME": "pretrain-0-x7k2p", "POD_NAMESPACE": "ml",
                 "POD_UID": POD_UID, "ROLLCALL_TENANT": "ml"},
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
        return daemon

    yield run
    for process in reversed(running):
        process.terminate()
        try:
            process.wait(timeout=120)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(timeout=120)


def wait_for(condition, daemon, seconds=90):
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, "".join(daemon.lines)
        time.sleep(0.2)
    return found


def test_the_pod_of_the_culprit_gets_an_event(start, tls):
    api_server = ApiServer(tls)
    daemon = start(api_server)
    event, = wait_for(api_server.taken, daemon)
    for version in ("1.28", "1.32", "1.36", "1.37"):
        check(event, version)
    assert event["involvedObject"]["name"] == "pretrain-0-x7k2p"
    assert event["involvedObject"]["uid"] == POD_UID, "kubectl describe pod lists Events by it"
    assert (event["type"], event["reason"]) == ("Warning", "JobHangs")
    assert "rank 3" in event["message"] and "job pretrain" in event["message"]
    assert TOKEN not in "".join(daemon.lines)


def test_an_event_that_is_there_already_is_not_sent_again(start, tls):
    api_server = ApiServer(tls, refusals=[500, 409])
    daemon = start(api_server)
    wait_for(lambda: [status for status, _ in api_server.seen] == [500, 409], daemon)
    time.sleep(6)  # after the next pauses
    assert [status for status, _ in api_server.seen] == [500, 409]
    assert "".join(daemon.lines).count("cannot deliver") == 1, "of the first answer alone"


def test_a_daemon_that_may_not_create_events_says_so(start, tls):
    api_server = ApiServer(tls, refusals=[403] * 100)
    daemon = start(api_server)
    wait_for(lambda: any("status 403" in line for line in daemon.lines), daemon)


def test_an_api_server_with_an_unknown_certificate_gets_no_token(start, tls, tmp_path):
    other = write_secret(render({"injection": {"mode": "webhook"}}), "rollcall-webhook-tls", tmp_path / "other")
    api_server = ApiServer(other)
    daemon = start(api_server)
    wait_for(lambda: any("kubernetes" in line for line in daemon.lines), daemon)
    assert api_server.seen == []


def test_the_chart_lets_the_daemon_create_events_and_nothing_else():
    documents = render({"daemon": {"events": True}})
    role = find(documents, "ClusterRole")
    assert role["rules"] == [{"apiGroups": [""], "resources": ["events"], "verbs": ["create"]}]
    binding = find(documents, "ClusterRoleBinding")
    assert binding["roleRef"]["name"] == role["metadata"]["name"]
    assert binding["subjects"] == [{"kind": "ServiceAccount", "name": "rollcall-daemon", "namespace": "rollcall"}]
    container, = find(documents, "Deployment", "rollcall-daemon")["spec"]["template"]["spec"]["containers"]
    assert "--alert=kubernetes=@/var/run/secrets/kubernetes.io/serviceaccount/token" in container["args"]
    for version in ("1.28", "1.37"):
        for document in (role, binding):
            check(document, version)
