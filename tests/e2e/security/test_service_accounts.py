# SPDX-License-Identifier: Apache-2.0
"""Service account tokens of Kubernetes at the real daemon: an authority as the API server has one,
its keys in a file or at a URL, and pods with tokens."""
import contextlib
import http.server
import json
import socket
import ssl
import subprocess
import threading
import time

import pytest
from conftest import BUILD, ROLLCALL, VICTIMS, Service, count_agents, long, page, rollcall, wait_for
from signing_keys import ISSUER, SigningKey, key_set

AGENT, VIEWER, ONCALL = (f"system:serviceaccount:rollcall:{name}"
                         for name in ("agent", "viewer", "oncall"))
GRANTS = (f"--grant=agent=sub:{AGENT},tenant=alpha", f"--grant=viewer=sub:{VIEWER},tenant=alpha",
          f"--grant=operator=sub:{ONCALL},tenant=*")


@pytest.fixture(scope="module")
def signing_keys(tmp_path_factory):
    folder = tmp_path_factory.mktemp("api-server")
    return [SigningKey(folder, name) for name in ("first", "second")]


@pytest.fixture
def key(signing_keys):
    return signing_keys[0]


class ApiServer:
    """Serves a key set at /openid/v1/jwks, to callers with the pod's own token if it has one."""

    def __init__(self, keys, token=None, context=None):
        self.keys, self.answers = keys, []
        server = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                is_known = token is None or self.headers["Authorization"] == f"Bearer {token}"
                status = (404 if self.path != "/openid/v1/jwks" else 200 if is_known else 401)
                server.answers.append(status)
                self.send_response(status)
                self.end_headers()
                if status == 200:
                    self.wfile.write(server.keys.encode())

            def log_message(self, *_):
                pass

        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        if context is not None:
            self.http.socket = context.wrap_socket(self.http.socket, server_side=True)
        self.url = (f"{'http' if context is None else 'https'}://127.0.0.1:{self.http.server_port}"
                    "/openid/v1/jwks")
        threading.Thread(target=self.http.serve_forever, daemon=True).start()

    def close(self):
        self.http.shutdown()
        self.http.server_close()


@pytest.fixture
def start_api_server():
    servers = []

    def start(*arguments, **options):
        servers.append(ApiServer(*arguments, **options))
        return servers[-1]

    yield start
    for server in servers:
        server.close()


@pytest.fixture
def start_daemon_with_keys(start_tls_daemon, tmp_path):
    """start_daemon_with_keys(*keys): a daemon with --jwks=FILE, which knows these keys."""
    def start(*keys, flags=()):
        (tmp_path / "jwks.json").write_text(key_set(*keys))
        return start_tls_daemon(f"--jwks={tmp_path / 'jwks.json'}", *GRANTS, *flags)
    return start


def mount(tmp_path, name, token):
    """The file with a token, replaced as a whole."""
    new = tmp_path / f"new-{name}"
    new.touch(mode=0o600)
    new.write_text(token)
    return new.rename(tmp_path / name)


def who_am_i(daemon, token):
    """(status, answer) of the page: what it takes the bearer for, or why it refuses him."""
    status, text = page(daemon, "/api/v1/whoami", {"Authorization": f"Bearer {token}"})
    return status, json.loads(text) if status == 200 else text


def is_admitted(daemon, token):
    return who_am_i(daemon, token)[0] == 200


@pytest.fixture
def ask(pki, tmp_path):
    """ask(daemon, token, *command): the command line, in a pod with this token."""
    def run(daemon, token, *command):
        return rollcall(*command, f"--daemon={daemon.address}", f"--tls-ca={pki}/ca.crt",
                        f"--token-file={mount(tmp_path, 'token', token)}")
    return run


# --- Roles and tenants.
def check_grants(daemon, key, ask):
    status, viewer = who_am_i(daemon, key.token(VIEWER))
    assert status == 200, viewer
    assert (viewer["roles"], viewer["tenants"]) == (["viewer"], ["alpha"])
    assert viewer["name"] == f"token of {VIEWER}"
    _, oncall = who_am_i(daemon, key.token(ONCALL))
    assert oncall["may_act"] and oncall["tenants"] == ["*"] and not viewer["may_act"]
    assert ask(daemon, key.token(VIEWER), "status").returncode == 0
    assert "needs the role operator" in ask(daemon, key.token(VIEWER), "stacks", "a-job").stderr
    assert "no job" in ask(daemon, key.token(ONCALL), "stacks", "a-job").stderr
    assert "needs the role viewer" in ask(daemon, key.token(AGENT), "status").stderr


def test_keys_in_a_file_admit_service_accounts_with_the_role_of_their_grant(
        start_daemon_with_keys, key, ask):
    check_grants(start_daemon_with_keys(key), key, ask)


@pytest.mark.parametrize("scheme", [long("http"), "https"])
def test_keys_at_a_url_admit_service_accounts_with_the_role_of_their_grant(
        start_tls_daemon, start_api_server, pki, tmp_path, key, ask, scheme):
    flags, context, own = [], None, None
    if scheme == "https":  # as the API server in a cluster: an authority of its own, and a token
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(f"{pki}/daemon.crt", f"{pki}/daemon.key")
        own = key.token("system:serviceaccount:rollcall:daemon", audience=ISSUER)
        flags = [f"--jwks-ca={pki}/ca.crt", f"--jwks-token-file={mount(tmp_path, 'own', own)}"]
    server = start_api_server(key_set(key), own, context)
    daemon = start_tls_daemon(f"--jwks={server.url}", f"--jwks-issuer={ISSUER}", *flags, *GRANTS)
    wait_for(lambda: is_admitted(daemon, key.token(VIEWER)))
    check_grants(daemon, key, ask)
    assert server.answers == [200], "the keys are fetched once, not for each token"


def test_a_server_of_keys_with_an_unknown_certificate_is_not_believed(
        start_tls_daemon, start_api_server, pki, tmp_path, key):
    other = tmp_path / "other"
    rollcall("pki", "init", str(other))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(f"{pki}/daemon.crt", f"{pki}/daemon.key")
    server = start_api_server(key_set(key), None, context)
    daemon = start_tls_daemon(f"--jwks={server.url}", f"--jwks-ca={other}/ca.crt", *GRANTS)
    daemon.find_or_read_until(rf"--jwks: cannot fetch {server.url}")
    status, text = who_am_i(daemon, key.token(VIEWER))
    assert status != 200 and "has no keys of --jwks yet" in text
    assert server.answers == []


def test_keys_do_not_come_over_a_network_in_clear(tmp_path):
    ended = subprocess.run([BUILD / "bin" / "rollcalld", "--jwks=http://10.0.0.1/openid/v1/jwks",
                            f"--report-dir={tmp_path / 'r'}"], capture_output=True, text=True,
                           timeout=120, check=False)
    assert ended.returncode == 1
    assert "--jwks: http://10.0.0.1/openid/v1/jwks is not an https:// URL" in ended.stderr


def test_a_job_is_reported_by_the_account_of_its_pod_and_seen_in_its_tenant_only(
        start_daemon_with_keys, pki, tmp_path, key, ask, monkeypatch):
    beta = "system:serviceaccount:beta:viewer"
    daemon = start_daemon_with_keys(key, flags=[f"--grant=viewer=sub:{beta},tenant=beta"])
    here = key.token(AGENT, node=socket.gethostname())
    job = Service(
        [ROLLCALL, "run", "--sim", f"--daemon={daemon.address}", "--hang-after=3s",
         f"--report-dir={tmp_path / 'here'}", "--", VICTIMS / "ranks", "-n", "4", "--keep-going",
         "--", VICTIMS / "one_rank_stops_calling"],
        env={"ROLLCALL_JOB": "a-job", "ROLLCALL_TENANT": "alpha",
             "ROLLCALL_TLS_CA": f"{pki}/ca.crt",
             "ROLLCALL_TOKEN_FILE": str(mount(tmp_path, "token-of-pod", here))})
    try:
        job.read_until("rank 3")
        assert "a-job" in ask(daemon, key.token(VIEWER), "status").stdout
        unseen = ask(daemon, key.token(beta), "status")
        assert unseen.returncode == 0 and "a-job" not in unseen.stdout, unseen
    finally:
        job.kill()


@contextlib.contextmanager
def an_agent(daemon, pki, tmp_path, token, *flags):
    agent = Service([BUILD / "bin" / "rollcall-agent", f"--daemon={daemon.address}",
                     f"--tls-ca={pki}/ca.crt", f"--token-file={mount(tmp_path, 'agent', token)}",
                     f"--dir={tmp_path / 'segments'}", "--scope=directory", "--tenant=alpha", *flags])
    try:
        yield agent
    finally:
        agent.kill()


def test_an_agent_speaks_for_the_node_of_its_pod_only(start_daemon_with_keys, pki, tmp_path, key):
    daemon = start_daemon_with_keys(key)
    with an_agent(daemon, pki, tmp_path, key.token(AGENT), "--host=node-8") as agent:
        said = agent.read_until(r"may not report for the host .node-8.*").group(0)
        assert "its hosts: node-7" in said
    assert count_agents(daemon) == 0
    with an_agent(daemon, pki, tmp_path, key.token(AGENT), "--host=node-7"):
        wait_for(lambda: count_agents(daemon) == 1)


# --- What is refused, on the page and by gRPC alike.
WRONG = {  # what the daemon says of it, and how it is made
    "its audience is not the one of --jwks-audience":
        lambda key, other: key.token(VIEWER, audience="https://kubernetes.default.svc"),
    "it has expired":
        lambda key, other: key.token(VIEWER, expires_in=-90),  # clocks may differ by a minute
    "its issuer is not the one of --jwks-issuer":
        lambda key, other: key.token(VIEWER, issuer="https://other.example"),
    "its signature is wrong": lambda key, other: other.token(VIEWER, kid=key.id),
    "its algorithm is neither RS256 nor ES256": lambda key, other: key.token(VIEWER, alg="none"),
    "no key of --jwks has signed": lambda key, other: other.token(VIEWER),
    "--grant=ROLE=sub:system:serviceaccount:ml:train":
        lambda key, other: key.token("system:serviceaccount:ml:train"),
}


@pytest.mark.parametrize("why", WRONG)
def test_a_wrong_token_is_refused_and_told_why(start_daemon_with_keys, signing_keys, ask, why):
    key, other = signing_keys
    daemon = start_daemon_with_keys(key, flags=[f"--jwks-issuer={ISSUER}"])
    assert is_admitted(daemon, key.token(VIEWER)), "the right one, for comparison"
    token = WRONG[why](key, other)
    status, text = who_am_i(daemon, token)
    assert status == 401 and why in text
    asked = ask(daemon, token, "status")
    assert asked.returncode != 0 and why in asked.stderr, asked.stderr


def test_the_audience_is_the_one_of_the_flag(start_daemon_with_keys, key):
    daemon = start_daemon_with_keys(key, flags=["--jwks-audience=rollcall.prod"])
    assert is_admitted(daemon, key.token(VIEWER, audience="rollcall.prod"))
    status, text = who_am_i(daemon, key.token(VIEWER))
    assert status == 401 and "its audience" in text


def test_a_service_account_token_does_not_go_into_the_log(start_daemon_with_keys, signing_keys):
    key, other = signing_keys
    daemon = start_daemon_with_keys(key)
    right, wrong = key.token(VIEWER), other.token(VIEWER)
    assert is_admitted(daemon, right) and not is_admitted(daemon, wrong)
    said = daemon.end()
    assert "refused a login" in said
    for token in (right, wrong):
        assert not any(part in said for part in token.split("."))


# --- Time passes.
@pytest.mark.long
def test_an_agent_goes_on_with_the_next_token_of_its_pod(start_daemon_with_keys, pki, tmp_path, key):
    daemon = start_daemon_with_keys(key)
    # It has expired, but clocks may differ by 60 s. So it ends in 12 s.
    with an_agent(daemon, pki, tmp_path, key.token(AGENT, expires_in=-48), "--host=node-7") as agent:
        wait_for(lambda: count_agents(daemon) == 1)
        mount(tmp_path, "agent", key.token(AGENT))  # the kubelet does so in time
        agent.read_until("certificate or token of this agent has expired")
        wait_for(lambda: count_agents(daemon) == 1)


def test_a_new_key_in_the_file_is_taken_up_and_one_that_is_gone_refused(
        start_daemon_with_keys, signing_keys, tmp_path):
    old, new = signing_keys
    daemon, file = start_daemon_with_keys(old), tmp_path / "jwks.json"
    assert is_admitted(daemon, old.token(VIEWER)) and not is_admitted(daemon, new.token(VIEWER))
    file.write_text(key_set(old)[:-20])  # cut short: the good ones stay
    daemon.read_until("--jwks is not a usable JSON Web Key Set")
    assert is_admitted(daemon, old.token(VIEWER))
    file.write_text(key_set(old, new))
    wait_for(lambda: is_admitted(daemon, new.token(VIEWER)))
    assert is_admitted(daemon, old.token(VIEWER)), "both are valid while they change"
    file.write_text(key_set(new))
    wait_for(lambda: not is_admitted(daemon, old.token(VIEWER)))
    assert is_admitted(daemon, new.token(VIEWER))


@pytest.mark.long
def test_a_token_with_a_new_key_makes_the_daemon_fetch_the_keys_again(
        start_tls_daemon, start_api_server, signing_keys):
    old, new = signing_keys
    server = start_api_server(key_set(old))
    daemon = start_tls_daemon(f"--jwks={server.url}", *GRANTS)
    wait_for(lambda: is_admitted(daemon, old.token(VIEWER)))
    server.keys = key_set(new)
    status, text = who_am_i(daemon, new.token(VIEWER))
    assert status == 401 and "rollcalld asks for new keys: try again" in text
    # At most every 30 s, so that strangers with made-up keys do not flood the API server.
    token = new.token(VIEWER)
    wait_for(lambda: time.sleep(1) or is_admitted(daemon, token))
    assert not is_admitted(daemon, old.token(VIEWER))
    assert server.answers == [200, 200]
