# SPDX-License-Identifier: Apache-2.0
"""Who may do what, with the programs as people start them: certificates, tokens, strangers."""
import os
import pwd
import re
import signal
import socket
import sqlite3
import subprocess
import urllib.error
import urllib.request

import pytest
from conftest import (
    AS_NOBODY,
    BUILD,
    ROLLCALL,
    VICTIMS,
    Service,
    client,
    copy_for_nobody,
    let_everybody_pass_to,
    need_a_loader,
    needs_another_user,
    new_token,
    page,
    reports_in,
    rollcall,
    seen_by_ps,
    stepped_clock,
    usable_by_all,
    wait_for,
)


# --- Closed by default.
@pytest.mark.parametrize("flag", ["--listen=0.0.0.0:0", "--http=0.0.0.0:0"])
def test_an_open_address_needs_tls_and_an_authenticator(tmp_path, flag):
    result = subprocess.run([BUILD / "bin" / "rollcalld", flag, f"--report-dir={tmp_path / 'r'}"],
                            capture_output=True, text=True, timeout=120, check=False)
    assert result.returncode == 1
    assert "it needs TLS and a way to authenticate its callers" in result.stderr
    assert "rollcall pki init" in result.stderr and "--insecure" in result.stderr


def test_insecure_opens_it_and_says_so(tmp_path):
    daemon = Service([BUILD / "bin" / "rollcalld", "--listen=0.0.0.0:0", "--http=none", "--insecure",
                      f"--report-dir={tmp_path / 'reports'}"])
    try:
        daemon.read_until("--insecure: every client that reaches")
    finally:
        daemon.kill()


@pytest.mark.parametrize("http, warns", [("0.0.0.0:0", True), ("127.0.0.1:0", False)])
def test_an_insecure_run_says_that_its_page_has_no_tls(tmp_path, http, warns):
    ended = rollcall("run", "--sim", "--insecure", f"--http={http}",
                     f"--report-dir={tmp_path / 'here'}", "--", "true")
    assert ended.returncode == 0, ended.stderr
    assert ("--insecure: the page on 0.0.0.0:" in ended.stderr) == warns, ended.stderr


@needs_another_user
def test_another_user_of_the_host_gets_nothing(daemon):
    program = usable_by_all("rollcall")
    try:
        result = subprocess.run([*AS_NOBODY, program, "status", f"--daemon={daemon.address}"],
                                capture_output=True, text=True, timeout=120, check=False)
    finally:
        os.unlink(program)
    assert result.returncode != 0
    assert "token" in result.stderr, result.stderr
    page = daemon.page.rpartition(":")
    code = ("import urllib.request, urllib.error\n"
            f"try: print(urllib.request.urlopen('{daemon.page}/api/v1/jobs').status)\n"
            "except urllib.error.HTTPError as error: print(error.code)")
    seen = subprocess.run([*AS_NOBODY, "/usr/bin/python3", "-c", code], capture_output=True,
                          text=True, timeout=120, check=False)
    assert seen.stdout.strip() == "401", (page, seen.stderr)


def test_the_same_user_needs_nothing(daemon):
    assert rollcall("status", f"--daemon={daemon.address}").returncode == 0
    with urllib.request.urlopen(f"{daemon.page}/api/v1/jobs", timeout=120) as answer:
        assert answer.status == 200


def test_a_unix_socket_belongs_to_its_user(start_daemon, tmp_path):
    path = tmp_path / "socket"
    daemon = Service([BUILD / "bin" / "rollcalld", f"--listen=unix:{path}", "--http=none",
                      f"--report-dir={tmp_path / 'reports'}"])
    try:
        daemon.read_until("agents on unix:")
        assert path.stat().st_mode & 0o777 == 0o600
        assert rollcall("status", f"--daemon=unix:{path}").returncode == 0
    finally:
        daemon.kill()


# --- Certificates.
@needs_another_user
def test_roles_come_from_certificates(start_tls_daemon, pki, tmp_path):
    daemon = start_tls_daemon()
    program = usable_by_all("rollcall")
    shared = copy_for_nobody(pki, tmp_path)

    def ask(who, *command):
        return subprocess.run([*AS_NOBODY, program, *command, f"--daemon={daemon.address}",
                               *client(shared, who)], capture_output=True, text=True, timeout=120,
                              check=False)
    try:
        assert ask("viewer", "status").returncode == 0
        denied = ask("viewer", "stacks", "any-job")
        assert "needs the role operator" in denied.stderr, denied.stderr
        assert "no job" in ask("operator", "stacks", "any-job").stderr
        assert "needs the role viewer" in ask("node-1", "status").stderr
        daemon = start_tls_daemon("--trust-domain=other.example")
        foreign = ask("viewer", "status")
        assert "gives no role in the trust domain other.example" in foreign.stderr, foreign.stderr
    finally:
        os.unlink(program)


@pytest.fixture
def run_as_nobody(tmp_path):
    """run_as_nobody(daemon, seconds, **environment): a job of another user that hangs, under `rollcall run`.
    It ends after so many seconds."""
    def run(daemon, seconds, **environment):
        own = tmp_path / "of-nobody"
        own.mkdir()
        os.chown(own, 65534, 65534)
        let_everybody_pass_to(own)
        return subprocess.run(
            [*AS_NOBODY, ROLLCALL, "run", "--sim", f"--daemon={daemon.address}", "--hang-after=3s",
             "--on-hang=abort", f"--report-dir={own / 'reports'}", "--", "timeout", str(seconds),
             VICTIMS / "ranks", "-n", "4", "--keep-going", "--", VICTIMS / "one_rank_stops_calling"],
            capture_output=True, text=True, timeout=120, check=False, cwd=own,
            env={**os.environ, "ROLLCALL_JOB": "my-job", "ROLLCALL_DIR": str(own / "segments"),
                 **environment})
    return run


@needs_another_user
def test_the_certificate_of_a_host_is_all_that_a_run_on_it_needs(start_tls_daemon, pki, tmp_path,
                                                                run_as_nobody):
    host = socket.gethostname()
    assert rollcall("pki", "issue", str(pki), "--role=agent", f"--host={host}").returncode == 0
    shared = copy_for_nobody(pki, tmp_path)
    ended = run_as_nobody(start_tls_daemon(), 30, ROLLCALL_TLS_CA=f"{shared}/ca.crt",
                          ROLLCALL_TLS_CERT=f"{shared}/{host}.crt",
                          ROLLCALL_TLS_KEY=f"{shared}/{host}.key")
    assert ended.returncode == 75, ended.stderr
    assert "rank 3" in ended.stderr and "cannot reach" not in ended.stderr
    assert (next((tmp_path / "of-nobody" / "reports").glob("*")) / "report.txt").exists()


@needs_another_user
def test_a_run_that_the_daemon_does_not_know_is_told_what_to_present(start_tls_daemon, pki, tmp_path,
                                                                    run_as_nobody):
    shared = copy_for_nobody(pki, tmp_path)
    ended = run_as_nobody(start_tls_daemon(), 10, ROLLCALL_TLS_CA=f"{shared}/ca.crt")
    assert ended.returncode == 124, ended.stderr  # the time limit of the job
    assert "permission denied by the daemon" in ended.stderr and "--tls-cert=FILE" in ended.stderr
    assert "cannot reach" not in ended.stderr


def agent_says(daemon, directory, pattern, *flags):
    agent = Service([BUILD / "bin" / "rollcall-agent", f"--daemon={daemon.address}",
                     f"--dir={directory}", "--scope=directory", *flags])
    try:
        return agent.read_until(pattern).group(0)
    finally:
        agent.kill()


def test_an_agent_cannot_pass_for_another_host(start_tls_daemon, pki, tmp_path):
    # The daemon knows its own user on loopback. A token decides before that.
    token = rollcall("token", "new", f"--file={tmp_path / 'tokens'}", "--name=n1", "--role=agent",
                     "--host=node-1").stdout
    (tmp_path / "token").write_text(token)
    os.chmod(tmp_path / "token", 0o600)
    daemon = start_tls_daemon(f"--token-file={tmp_path / 'tokens'}")
    said = agent_says(daemon, tmp_path / "segments", r"may not report for the host .node-2.*", "--host=node-2",
                      f"--tls-ca={pki}/ca.crt", f"--token-file={tmp_path / 'token'}")
    assert "its hosts: node-1" in said


@needs_another_user
def test_an_agent_with_the_certificate_of_another_host_is_refused(start_tls_daemon,
                                                                  start_agent_of_nobody):
    agent = start_agent_of_nobody(start_tls_daemon(), "node-1", "--host=node-2")
    said = agent.read_until(r"may not report for the host .node-2.*").group(0)
    assert "its hosts: node-1" in said


def old_pki(tmp_path):
    """Certificates that were issued 22 hours ago; node-1's is valid for a day."""
    step, old = tmp_path / "step", tmp_path / "old"
    step.write_text(str(-22 * 3600))
    past = {**os.environ, **stepped_clock(step)}
    for arguments in (["init"], ["issue", "--role=daemon", "--host=127.0.0.1"],
                      ["issue", "--role=agent", "--host=node-1", "--days=1"]):
        made = rollcall("pki", arguments[0], str(old), *arguments[1:], env=past)
        assert made.returncode == 0, made.stderr
    return old


def test_an_agent_says_that_its_certificate_expires_soon(start_tls_daemon, tmp_path):
    old = old_pki(tmp_path)
    agent_says(start_tls_daemon(pki=old), tmp_path,
               rf"the certificate of {old}/node-1\.crt expires on .*; renew it", "--host=node-1",
               *client(old, "node-1"))


def test_a_run_says_that_its_certificate_expires_soon(start_tls_daemon, tmp_path):
    old = old_pki(tmp_path)
    ended = rollcall("run", "--sim", f"--daemon={start_tls_daemon(pki=old).address}",
                     *client(old, "node-1"), f"--report-dir={tmp_path / 'here'}", "--", "sleep", "1")
    assert ended.returncode == 0, ended.stderr
    assert len(re.findall(r"node-1\.crt expires on .*; renew it", ended.stderr)) == 1, ended.stderr


def test_a_client_may_believe_the_authorities_of_the_system(start_tls_daemon, pki, tmp_path):
    daemon = start_tls_daemon()

    def ask(trusted):
        return rollcall("status", f"--daemon={daemon.address}", "--tls-ca=system",
                        env={**os.environ, "SSL_CERT_FILE": str(trusted)})
    assert ask(pki / "ca.crt").returncode == 0
    other = tmp_path / "other"
    rollcall("pki", "init", str(other))
    assert "no authority in the file of --tls-ca signed" in ask(other / "ca.crt").stderr


# --- Revoked certificates.
def test_a_revoked_client_certificate_opens_nothing(start_tls_daemon, pki):
    daemon = start_tls_daemon(f"--tls-crl={pki}/ca.crl")

    def ask(who):
        return rollcall("status", f"--daemon={daemon.address}", *client(pki, who))

    def read(who):
        return page(daemon, "/api/v1/jobs", certificate=pki / who)
    assert ask("viewer").returncode == 0 and read("viewer")[0] == 200
    assert rollcall("pki", "revoke", str(pki), "viewer").returncode == 0
    refused = wait_for(lambda: (result := ask("viewer")).returncode != 0 and result)
    assert "the certificate has been revoked" in refused.stderr, refused.stderr
    status, text = read("viewer")
    assert status in (401, 403) and "the certificate has been revoked" in text
    assert ask("operator").returncode == 0 and read("operator")[0] == 200


@needs_another_user
def test_the_stream_of_a_revoked_agent_ends(start_tls_daemon, start_agent_of_nobody, pki):
    daemon = start_tls_daemon(f"--tls-crl={pki}/ca.crl")

    def has_agents(count):
        asked = rollcall("status", f"--daemon={daemon.address}", *client(pki, "operator"))
        return re.search(rf"; {count} agents? connected", asked.stdout)
    agent = start_agent_of_nobody(daemon, "node-1", "--host=node-1")
    start_agent_of_nobody(daemon, "node-2", "--host=node-2")
    wait_for(lambda: has_agents(2))
    assert rollcall("pki", "revoke", str(pki), "node-1").returncode == 0
    wait_for(lambda: has_agents(1))
    agent.read_until("has expired or was revoked")
    again = start_agent_of_nobody(daemon, "node-1", "--host=node-1")
    again.read_until("the daemon refuses this agent.*the certificate has been revoked")


# --- `rollcall run` without flags is as it was before there was TLS.
def makers_of_tls(folder):
    """Which of our programs and gRPC have called SSL_CTX_new: the dynamic linker notes each function
    that a file calls, at its first call. Of some other libraries it notes all at the start."""
    said = "".join(path.read_text(errors="replace") for path in folder.glob("ld.*"))
    assert "binding file" in said
    return set(re.findall(r"binding file \S*?(rollcalld?|libgrpc)\S* \[0\] to \S+ \[0\]: "
                          r"normal symbol `SSL_CTX_new'", said))


def test_the_embedded_daemon_makes_no_object_of_tls(start_tls_daemon, tmp_path, monkeypatch):
    need_a_loader("lists what they call")
    monkeypatch.setenv("LD_DEBUG", "bindings")
    for name in ("run", "daemon"):
        (tmp_path / name).mkdir()
    monkeypatch.setenv("LD_DEBUG_OUTPUT", str(tmp_path / "run" / "ld"))
    assert rollcall("run", f"--report-dir={tmp_path / 'here'}", "--", "true").returncode == 0
    monkeypatch.setenv("LD_DEBUG_OUTPUT", str(tmp_path / "daemon" / "ld"))
    start_tls_daemon()
    assert makers_of_tls(tmp_path / "run") == set()
    assert makers_of_tls(tmp_path / "daemon") != set()


# --- Mistakes that people make.
def test_a_client_without_tls_is_told_to_use_it(start_tls_daemon):
    daemon = start_tls_daemon()
    result = rollcall("status", f"--daemon={daemon.address}")
    assert result.returncode != 0
    assert "this daemon speaks TLS" in result.stderr and "--tls-ca=FILE" in result.stderr


def test_a_client_with_tls_is_told_that_the_daemon_has_none(daemon, pki):
    result = rollcall("status", f"--daemon={daemon.address}", f"--tls-ca={pki}/ca.crt")
    assert result.returncode != 0
    assert "does not speak TLS" in result.stderr, result.stderr


def test_http_to_the_page_with_tls_says_https(start_tls_daemon):
    daemon = start_tls_daemon()
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(f"http://127.0.0.1:{daemon.page_port}/", timeout=120)
    assert refused.value.code == 400
    assert "https://" in refused.value.read().decode()


def test_no_secret_is_on_a_command_line_or_in_the_log(start_tls_daemon, start_job, pki, tmp_path,
                                                      monkeypatch):
    agents, agent_file = new_token(tmp_path, "agents", "--role=agent", "--host=*")
    viewers, viewer_file = new_token(tmp_path, "ci", "--role=viewer")
    page_file = tmp_path / "token-of-the-page"
    page_file.touch(mode=0o600)
    page_file.write_text("a-token-of-the-page-that-nobody-guesses")
    secrets = [agents, viewers, page_file.read_text()]
    daemon = start_tls_daemon(f"--token-file={tmp_path / 'tokens'}", f"--http-token-file={page_file}")
    assert page(daemon, "/api/v1/jobs", {"Authorization": f"Bearer {secrets[2]}"})[0] == 200
    agent = Service([BUILD / "bin" / "rollcall-agent", f"--daemon={daemon.address}",
                     f"--tls-ca={pki}/ca.crt", f"--token-file={agent_file}",
                     f"--dir={tmp_path / 'segments'}", "--scope=directory"])
    try:
        monkeypatch.setenv("ROLLCALL_TLS_CA", f"{pki}/ca.crt")
        monkeypatch.setenv("ROLLCALL_TOKEN_FILE", str(agent_file))
        job = start_job(daemon)  # it hangs
        wait_for(lambda: reports_in(tmp_path / "reports"))
        daemon.process.send_signal(signal.SIGSTOP)  # so that `status` waits and can be looked at
        status = subprocess.Popen([ROLLCALL, "status", f"--daemon={daemon.address}",
                                   f"--token-file={viewer_file}"], stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, text=True)
        seen = wait_for(lambda: "status\0" in (seen := seen_by_ps(status.pid)) and seen)
        seen += "".join(seen_by_ps(service.process.pid) for service in (daemon, agent, job))
        daemon.process.send_signal(signal.SIGCONT)
        for program in ("rollcalld", "rollcall-agent", "one_rank_stops_calling"):
            assert f"{program}\0" in seen
        assert seen.count("ROLLCALL_TOKEN_FILE=") >= 2, "the environments were read, too"
        out, err = status.communicate(timeout=120)
        assert status.returncode == 0 and "a-job" in out, err
    finally:
        daemon.process.send_signal(signal.SIGCONT)
        said = agent.end()
    said += out + err + job.end() + daemon.end()
    assert "pages on https" in said
    files = [path for path in tmp_path.glob("reports*/**/*") if path.is_file()]
    files += tmp_path.glob("reports.db*")
    assert {"incident.json", "reports.db"} <= {path.name for path in files}
    written = "".join(path.read_text(errors="replace") for path in files)
    for secret in secrets:
        assert secret not in seen, "others see it with ps"
        assert secret not in said, "it is in a log"
        assert secret not in written, "it is in a report"


def test_who_took_stacks_is_in_the_log_and_the_history(start_daemon, start_job, tmp_path):
    daemon = start_daemon(f"--history={tmp_path / 'history.db'}")
    start_job(daemon)
    assert rollcall("stacks", f"--daemon={daemon.address}", "a-job").returncode == 0
    who = daemon.read_until(r"audit: (.*) \(ipv4:127.0.0.1:\d+\): take stacks, job a-job").group(1)
    assert who == pwd.getpwuid(os.geteuid()).pw_name
    daemon.kill()
    with sqlite3.connect(tmp_path / "history.db") as history:
        rows = history.execute("SELECT who, action, object FROM actions").fetchall()
    assert rows == [(who, "take stacks", "job a-job, all ranks")]


# --- The page.
def test_the_metric_tells_when_the_certificate_expires(start_tls_daemon):
    status, text = page(start_tls_daemon(), "/metrics")
    assert status == 200
    days = re.findall(r"^rollcall_tls_certificate_days_left (\S+)$", text, re.MULTILINE)
    assert len(days) == 1 and 364 < float(days[0]) < 366, days


def test_a_name_that_is_not_the_pages_is_refused(start_tls_daemon):
    daemon = start_tls_daemon()
    status, text = page(daemon, "/api/v1/jobs", {"Host": "evil.example"})
    assert status == 421
    assert "--http-host" in text


def test_another_site_cannot_act(start_tls_daemon):
    daemon = start_tls_daemon()
    status, _ = page(daemon, "/api/v1/stacks?job=a", {"Origin": "https://evil.example",
                                                      "X-Rollcall": "1"}, b"")
    assert status == 403


def test_guessing_tokens_is_slow(start_tls_daemon):
    daemon = start_tls_daemon()
    codes = [page(daemon, "/api/v1/jobs", {"Authorization": f"Bearer rollcall_{i:043}"})[0]
             for i in range(14)]
    assert codes[0] == 401
    assert 429 in codes


@pytest.mark.parametrize("domain", ["spiffe://prod.example", "Prod.example"])
def test_a_trust_domain_that_would_fit_no_certificate_is_an_error(tmp_path, domain):
    result = subprocess.run([BUILD / "bin" / "rollcalld", f"--trust-domain={domain}",
                             f"--report-dir={tmp_path / 'r'}"],
                            capture_output=True, text=True, timeout=120, check=False)
    assert result.returncode == 1
    assert f"--trust-domain={domain}: the part DOMAIN" in result.stderr, result.stderr


# --- A token from its making to its end.
def test_a_deleted_token_file_revokes_nothing_and_an_empty_list_all(start_tls_daemon, tmp_path):
    tokens = tmp_path / "tokens"
    secret = rollcall("token", "new", f"--file={tokens}", "--name=ci", "--role=viewer").stdout
    daemon = start_tls_daemon(f"--token-file={tokens}")
    header = {"Authorization": f"Bearer {secret.strip()}"}
    tokens.unlink()
    said = daemon.read_until("--token-file: cannot read (.*)").group(1)
    assert "the tokens that were good before stay valid" in said and "tokens: []" in said
    assert page(daemon, "/api/v1/jobs", header)[0] == 200
    tokens.write_text("tokens: []\n")
    tokens.chmod(0o600)
    wait_for(lambda: page(daemon, "/api/v1/jobs", header)[0] == 401)


@pytest.mark.parametrize("way", ["page", "grpc"])
def test_a_revoked_token_is_refused_within_seconds(start_tls_daemon, pki, tmp_path, way):
    tokens, secret = tmp_path / "tokens", tmp_path / "secret"
    secret.write_text(rollcall("token", "new", f"--file={tokens}", "--name=ci",
                               "--role=viewer").stdout)
    secret.chmod(0o600)
    daemon = start_tls_daemon(f"--token-file={tokens}")

    def is_served():
        if way == "page":
            return page(daemon, "/api/v1/jobs",
                        {"Authorization": f"Bearer {secret.read_text().strip()}"})[0] == 200
        return rollcall("status", f"--daemon={daemon.address}", f"--tls-ca={pki}/ca.crt",
                        f"--token-file={secret}").returncode == 0
    assert is_served()
    assert rollcall("token", "revoke", f"--file={tokens}", "--name=ci").returncode == 0
    wait_for(lambda: not is_served())


# --- A client keeps away from a daemon whose certificate has been revoked, and from open keys.
@pytest.mark.long
def test_no_client_speaks_to_a_daemon_that_was_revoked(start_tls_daemon, pki, tmp_path):
    daemon = start_tls_daemon()
    with_list = [f"--daemon={daemon.address}", f"--tls-crl={pki}/ca.crl"]

    def ask():
        return rollcall("status", *with_list, *client(pki, "viewer"))

    assert ask().returncode == 0
    agent = Service([BUILD / "bin" / "rollcall-agent", *with_list, *client(pki, "node-1"),
                     "--host=node-1", f"--dir={tmp_path / 'segments'}", "--scope=directory"])
    try:
        wait_for(lambda: "; 1 agent connected" in ask().stdout)
        assert rollcall("pki", "revoke", str(pki), "daemon").returncode == 0
        result = ask()
        assert result.returncode != 0 and "in the list of --tls-crl" in result.stderr
        agent.read_until("in the list of --tls-crl")  # it looks every ten seconds
    finally:
        agent.kill()


@pytest.mark.parametrize("who", ["daemon", "viewer"])
def test_a_key_that_others_can_read_is_not_used(start_tls_daemon, pki, tmp_path, who):
    daemon = start_tls_daemon() if who == "viewer" else None
    key = pki / f"{who}.key"
    key.chmod(0o644)
    if daemon is None:
        result = subprocess.run([BUILD / "bin" / "rollcalld", "--listen=127.0.0.1:0", "--http=none",
                                 f"--tls-cert={pki}/daemon.crt", f"--tls-key={key}",
                                 f"--report-dir={tmp_path / 'r'}"],
                                capture_output=True, text=True, timeout=120, check=False)
    else:
        result = rollcall("status", f"--daemon={daemon.address}", *client(pki, who))
    assert result.returncode != 0
    assert f"type: chmod go-rwx {key}" in result.stderr
