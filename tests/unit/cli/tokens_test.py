# SPDX-License-Identifier: Apache-2.0
"""`rollcall token`: new tokens, their file, their end."""
import hashlib
import re

import pytest
from command_line import rollcall

TOKEN = re.compile(r"rollcall_[A-Za-z0-9_-]{43}")


def new_token(path, name, *flags):
    return rollcall("token", "new", f"--file={path}", f"--name={name}", *flags)


def test_a_new_token_stands_on_stdout_alone_and_never_in_the_file(tmp_path):
    path = tmp_path / "tokens.yaml"
    result = new_token(path, "ci", "--role=viewer", "--tenant=a", "--tenant=b")
    assert result.returncode == 0
    token = result.stdout.strip()
    assert TOKEN.fullmatch(token)
    assert token not in result.stderr + path.read_text()
    assert hashlib.sha256(token.encode()).hexdigest() in path.read_text()
    assert path.stat().st_mode & 0o777 == 0o600
    assert f"--token-file={path}" in result.stderr


def test_tokens_are_listed_without_secrets_and_revoked_by_name(tmp_path):
    path = tmp_path / "tokens.yaml"
    path.write_text("# ours\n")
    new_token(path, "ci", "--role=viewer")
    before = path.read_text()
    new_token(path, "nodes", "--role=agent", "--host=*", "--expires=never")
    listed = rollcall("token", "list", f"--file={path}").stdout
    assert re.search(r"^ci +viewer +tenants default, expires 20", listed, re.MULTILINE)
    assert re.search(r"^nodes +agent +tenants default, hosts \*, expires never$", listed,
                     re.MULTILINE)
    assert not re.search(r"[0-9a-f]{16}", listed)
    assert rollcall("token", "revoke", "--name=nodes", f"--file={path}").returncode == 0
    assert path.read_text() == before


@pytest.mark.parametrize("flags, words", [
    (["--role=viewer"], "--name=NAME"),
    (["--name=a b", "--role=viewer"], "--name=NAME"),
    (["--name=a"], "--role=agent|viewer|operator"),
    (["--name=a", "--role=root"], "root"),
    (["--name=a", "--role=agent"], "--host='*'"),
    (["--name=a", "--role=viewer", "--host=b"], "leave out --host"),
    (["--name=a", "--role=viewer", "--tenant=a/b"], "a/b is not a tenant"),
    (["--name=a", "--role=viewer", "--expires=soon"], "soon is neither"),
    (["--name=a", "--role=viewer", "--expires=0d"], "0d is neither"),
])
def test_a_token_with_wrong_flags_is_not_made(tmp_path, flags, words):
    path = tmp_path / "tokens.yaml"
    result = rollcall("token", "new", f"--file={path}", *flags)
    assert result.returncode == 2
    assert words in result.stderr
    assert not path.exists() and not result.stdout


def test_a_second_token_of_a_name_and_a_broken_file_are_refused(tmp_path):
    path = tmp_path / "tokens.yaml"
    new_token(path, "ci", "--role=viewer")
    before = path.read_text()
    result = new_token(path, "ci", "--role=viewer")
    assert result.returncode == 1 and "a token already has the name ci" in result.stderr
    assert path.read_text() == before and not result.stdout
    path.write_text("tokens: [\n")
    for action in (["list"], ["revoke", "--name=ci"], ["new", "--name=x", "--role=viewer"]):
        result = rollcall("token", *action, f"--file={path}")
        assert result.returncode == 1 and "line 2" in result.stderr
    assert path.read_text() == "tokens: [\n"
