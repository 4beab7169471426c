# SPDX-License-Identifier: Apache-2.0
"""Authorities other than `rollcall pki`, as cert-manager, SPIRE and Vault are: what they write is
made by the openssl program here, in files as they lay them out. And an authority that goes."""
import os
import re
import shutil
import ssl
import subprocess
import time

import pytest
from conftest import BUILD, count_agents, let_everybody_pass_to, long, needs_another_user, rollcall, wait_for


# --- An authority that goes.
@pytest.fixture
def two_authorities(pki, tmp_path):
    """The certificate of node-1 is of another authority than the others. The file with both."""
    other, both = tmp_path / "other", tmp_path / "both.crt"
    for command in (["init", other], ["issue", other, "--role=agent", "--host=node-1"]):
        assert rollcall("pki", *map(str, command)).returncode == 0
    for name in ("node-1.crt", "node-1.key"):
        shutil.copy(other / name, pki / name)
    both.write_text((pki / "ca.crt").read_text() + (other / "ca.crt").read_text())
    return both


@pytest.mark.long
@needs_another_user
def test_the_stream_of_an_agent_ends_with_its_authority(two_authorities, pki, start_tls_daemon,
                                                        start_agent_of_nobody):
    daemon = start_tls_daemon(tls=(pki / "daemon.crt", pki / "daemon.key", two_authorities))
    start_agent_of_nobody(daemon, "node-2", "--host=node-2")
    agent = start_agent_of_nobody(daemon, "node-1", "--host=node-1")
    wait_for(lambda: count_agents(daemon) == 2)
    both, begun = two_authorities.read_text(), time.monotonic()
    two_authorities.write_text((pki / "ca.crt").read_text())
    said = agent.read_until("the daemon refuses this agent.*").group(0)
    assert time.monotonic() - begun < 60
    assert "no longer trusts the authority" in said and "`rollcall pki issue`" in said
    ended = daemon.read_until("ended a stream of agents.*").group(0)
    assert "no longer in --tls-client-ca" in ended and "node-1" in ended and "node-2" not in ended
    time.sleep(3)  # it tries again
    assert count_agents(daemon) == 1
    again = start_agent_of_nobody(daemon, "node-1", "--host=node-1")
    again.read_until("its authority is not in the daemon's --tls-client-ca")
    again.kill()
    two_authorities.write_text(both)
    wait_for(lambda: count_agents(daemon) == 2)


# --- Other issuers.
def openssl(*arguments, env=None):
    subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True,
                   env={**os.environ, **(env or {})})


class Authority:
    """A root, and an authority below it that signs."""

    def __init__(self, folder):
        self.folder = folder
        folder.mkdir()
        is_authority = "basicConstraints=critical,CA:TRUE\nkeyUsage=critical,keyCertSign,cRLSign\n"
        self.sign("root", is_authority, signer=None)
        self.sign("issuing", is_authority, signer="root")

    def read(self, name):
        return (self.folder / name).read_text()

    def sign(self, name, extensions, signer="issuing", days=30, env=None):
        at = self.folder
        openssl("req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                "-subj", f"/O=Other/CN={name}", "-keyout", at / f"{name}.key", "-out", at / "csr")
        (at / "extensions").write_text(f"subjectKeyIdentifier=hash\n{extensions}")
        by = (["-signkey", at / f"{name}.key"] if signer is None else
              ["-CA", at / f"{signer}.crt", "-CAkey", at / f"{signer}.key", "-CAcreateserial"])
        openssl("x509", "-req", "-in", at / "csr", *by, "-days", days, "-sha256", "-extfile",
                at / "extensions", "-out", at / f"{name}.crt", env=env)

    def issue(self, name, names, **options):
        """Certificate, key, certificate of the authority that signed it, certificate of the root."""
        self.sign(name, "basicConstraints=critical,CA:FALSE\nkeyUsage=critical,digitalSignature\n"
                  f"extendedKeyUsage=serverAuth,clientAuth\nsubjectAltName={names}\n", **options)
        return [self.read(file) for file in (f"{name}.crt", f"{name}.key", "issuing.crt", "root.crt")]


def write(path, text, mode):
    path.write_text(text)
    path.chmod(mode)
    return path


def as_secret(mount, certificate, key, issuing, root):
    """A Secret of Kubernetes, mounted: everybody may read it, and one link switches all its files."""
    files = {"tls.crt": certificate + issuing, "tls.key": key, "ca.crt": root}
    version = mount / f"..{time.time_ns()}"
    version.mkdir(parents=True)
    for name, text in files.items():
        write(version / name, text, 0o644)
        if not (mount / name).is_symlink():
            (mount / name).symlink_to(f"..data/{name}")
    (mount / "..data_tmp").symlink_to(version.name)
    (mount / "..data_tmp").rename(mount / "..data")
    return [mount / name for name in files]


def as_spiffe_helper(mount, certificate, key, issuing, root):
    """One file after the other, in place."""
    mount.mkdir(exist_ok=True)
    return [write(mount / "svid.pem", certificate + issuing, 0o644),
            write(mount / "svid_key.pem", key, 0o600), write(mount / "svid_bundle.pem", root, 0o644)]


def as_vault_agent(mount, certificate, key, issuing, root):
    """One file with the pair, replaced as a whole."""
    mount.mkdir(exist_ok=True)
    pair = write(mount / "new", certificate + issuing + key, 0o600).rename(mount / "pair.pem")
    return [pair, pair, write(mount / "ca.pem", root, 0o644)]


# How the files lie, the name in an agent's certificate, the host for which it speaks, the daemon's
# flags for it.
ISSUERS = {
    "cert-manager": (as_secret, "DNS:node-17.nodes.example", "node-17.nodes.example",
                     ["--grant=agent=dns:*.nodes.example"]),
    "cert-manager, a name of ours": (
        as_secret, "URI:spiffe://prod.example/rollcall/agent/host/node-17", "node-17", []),
    "spire": (as_spiffe_helper, "URI:spiffe://prod.example/ns/rollcall/sa/agent", "any-host",
              ["--trust-domain=prod.example",
               "--grant=agent=spiffe://prod.example/ns/rollcall/sa/agent,host=*"]),
    "vault": (as_vault_agent, "URI:spiffe://prod.example/rollcall/agent/host/node-17", "node-17", []),
}


def flags_of(certificate, key, authorities):
    return [f"--tls-cert={certificate}", f"--tls-key={key}", f"--tls-ca={authorities}",
            "--tls-server-name=daemon.example"]


def give_to_nobody(mount):
    for path in [mount, *mount.rglob("*")]:
        os.chown(path, 65534, 65534, follow_symlinks=False)
    let_everybody_pass_to(mount)


def served(daemon):
    """The certificate that the page shows, as text without white space."""
    return re.sub(r"\s", "", ssl.get_server_certificate(("127.0.0.1", int(daemon.page_port))))


@needs_another_user
@pytest.mark.parametrize("issuer", [issuer if issuer == "cert-manager" else long(issuer) for issuer in ISSUERS])
def test_the_files_of_another_issuer_are_enough(start_tls_daemon, start_agent_of_nobody, tmp_path,
                                                issuer):
    lay_out, name, host, flags = ISSUERS[issuer]
    authority = Authority(tmp_path / "authority")
    own = lay_out(tmp_path / "of-daemon", *authority.issue("daemon", "DNS:daemon.example"))
    daemon = start_tls_daemon(*flags, tls=own)
    pair = lay_out(tmp_path / "of-agent", *authority.issue("agent", name))
    give_to_nobody(tmp_path / "of-agent")
    if host != "any-host":
        other = start_agent_of_nobody(daemon, "", "--host=node-18", tls=flags_of(*pair))
        other.read_until("may not report for the host .node-18")
        other.kill()
    agent = start_agent_of_nobody(daemon, "", f"--host={host}", tls=flags_of(*pair))
    wait_for(lambda: count_agents(daemon) == 1)
    lay_out(tmp_path / "of-daemon", *authority.issue("daemon", "DNS:daemon.example"))
    renewed = re.sub(r"\s", "", authority.read("daemon.crt"))
    wait_for(lambda: served(daemon) == renewed)
    assert count_agents(daemon) == 1 and agent.process.poll() is None


@pytest.mark.long
@needs_another_user
def test_an_agent_goes_on_with_its_next_certificate(start_tls_daemon, start_agent_of_nobody,
                                                    tmp_path):
    authority = Authority(tmp_path / "authority")
    own = as_spiffe_helper(tmp_path / "of-daemon", *authority.issue("daemon", "DNS:daemon.example"))
    daemon = start_tls_daemon(tls=own)
    # Of an authority whose clock is late, it ends in 20 s.
    step = write(tmp_path / "step", str(20 - 24 * 3600), 0o644)
    past = {"LD_PRELOAD": str(BUILD / "tests" / "stepped_clock.so"), "STEP_FILE": str(step)}
    name, mount = "URI:spiffe://prod.example/rollcall/agent/host/node-17", tmp_path / "of-agent"
    pair = as_spiffe_helper(mount, *authority.issue("agent", name, days=1, env=past))
    give_to_nobody(mount)
    agent = start_agent_of_nobody(daemon, "", "--host=node-17", tls=flags_of(*pair))
    wait_for(lambda: count_agents(daemon) == 1)
    as_spiffe_helper(mount, *authority.issue("agent", name))
    give_to_nobody(mount)
    agent.read_until("the certificate or token of this agent has expired")
    wait_for(lambda: count_agents(daemon) == 1)
