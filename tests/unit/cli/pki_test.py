# SPDX-License-Identifier: Apache-2.0
"""`rollcall pki`, with the openssl program as the judge of what it makes."""
import os
import re
import subprocess

import pytest

ROLLCALL = os.environ["CLI_TEST_ROLLCALL"]


def pki(*arguments):
    return subprocess.run([ROLLCALL, "pki", *map(str, arguments)], capture_output=True, text=True,
                          timeout=120, check=False)


def openssl(*arguments):
    return subprocess.run(["openssl", *map(str, arguments)], capture_output=True, text=True,
                          timeout=120, check=False).stdout


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / "pki"
    result = pki("init", made)
    assert result.returncode == 0, result.stderr
    return made


def test_two_commands_make_a_daemon_and_print_its_flags(folder):
    result = pki("issue", folder, "--role=daemon", "--host=node-1", "--host=10.0.0.1")
    assert result.returncode == 0, result.stderr
    for flag, file in re.findall(r"(--tls-[\w-]+)=(\S+)", result.stdout):
        assert os.path.isfile(file), flag
    verified = openssl("verify", "-x509_strict", "-purpose", "sslserver", "-verify_hostname",
                       "node-1", "-crl_check", "-CRLfile", folder / "ca.crl", "-CAfile",
                       folder / "ca.crt", folder / "daemon.crt")
    assert verified.endswith("daemon.crt: OK\n"), verified


def test_a_flag_takes_one_value(folder):
    result = pki("issue", "--role", "agent", "--host", "node-17", "--tenant", "a", folder)
    assert result.returncode == 0, result.stderr
    assert "spiffe://rollcall/rollcall/agent/host/node-17/tenant/a" in pki("list", folder).stdout


def test_keys_are_for_the_owner_whatever_the_umask_says(tmp_path):
    before = os.umask(0)
    try:
        pki("init", tmp_path / "pki")
        pki("issue", tmp_path / "pki", "--role=viewer")
    finally:
        os.umask(before)
    modes = {path.name: path.stat().st_mode & 0o777 for path in (tmp_path / "pki").iterdir()}
    assert modes["ca.key"] == modes["viewer.key"] == 0o600
    assert modes["ca.crt"] == modes["viewer.crt"] == 0o644
    assert (tmp_path / "pki").stat().st_mode & 0o777 == 0o700


def test_renew_all_takes_those_that_expire_soon(folder):
    pki("issue", folder, "--role=viewer", "--name=soon", "--days=29")
    pki("issue", folder, "--role=viewer", "--name=later", "--days=31")
    before = (folder / "later.crt").read_text()
    result = pki("renew", folder, "--all", "--within=30d")
    assert "renewed soon" in result.stdout and "1 of 2" in result.stdout
    assert (folder / "later.crt").read_text() == before


def test_renew_all_goes_on_after_a_failure_and_exits_with_1(folder):
    for name in ("a", "z"):
        pki("issue", folder, "--role=viewer", f"--name={name}", "--days=10")
    (folder / "m.crt").write_text("foreign")
    (folder / "a.key").unlink()
    (folder / "a.key").mkdir()
    result = pki("renew", folder, "--all")
    assert result.returncode == 1
    assert "m.crt" in result.stderr and "a.key" in result.stderr, result.stderr
    assert "renewed z," in result.stdout, result.stdout


def test_a_revoked_certificate_is_in_the_list(folder):
    pki("issue", folder, "--role=viewer", "--name=ann")
    serial = openssl("x509", "-in", folder / "ann.crt", "-noout", "-serial").strip().split("=")[1]
    assert serial not in openssl("crl", "-in", folder / "ca.crl", "-noout", "-text")
    result = pki("revoke", folder, "ann")
    assert "revoked 1 certificate of ann" in result.stdout
    assert serial in openssl("crl", "-in", folder / "ca.crl", "-noout", "-text")
    assert re.search(r"^ann +viewer +revoked", pki("list", folder).stdout, re.MULTILINE)


def test_a_key_is_never_overwritten_unasked(folder):
    pki("issue", folder, "--role=viewer")
    key = (folder / "viewer.key").read_text()
    again = pki("issue", folder, "--role=viewer")
    assert again.returncode == 1
    assert "rollcall pki renew" in again.stderr
    assert pki("init", folder).returncode == 1
    assert (folder / "viewer.key").read_text() == key


@pytest.mark.parametrize("arguments, words", [
    (["issue", "DIR"], "needs --role="),
    (["issue", "DIR", "--role=agent"], "needs --host="),
    (["issue", "DIR", "--role=root"], "--role=root"),
    (["issue", "DIR", "--role=viewer", "--days=0x"], "--days"),
    (["list", "DIR", "--role=agent"], "pki list has no --role"),
    (["renew", "DIR"], "needs a NAME"),
    (["revoke", "DIR", "../ca"], "../ca"),
    (["frob", "DIR"], "frob"),
    (["init"], "DIR"),
])
def test_wrong_usage_exits_with_2_and_says_why(folder, arguments, words):
    result = pki(*[folder if word == "DIR" else word for word in arguments])
    assert result.returncode == 2
    assert words in result.stderr


def test_a_folder_without_an_authority_names_the_next_command(tmp_path):
    result = pki("issue", tmp_path / "none", "--role=viewer")
    assert result.returncode == 1
    assert "rollcall pki init" in result.stderr
