# SPDX-License-Identifier: Apache-2.0
"""What requests contain, in answers and on terminals: no control characters, and no lines that nobody wrote."""
import re
import subprocess
import urllib.error
import urllib.parse
import urllib.request

from conftest import ROLLCALL

HOSTILE = "\x1b[31mred\nrollcall: all is well\u202e\x9b2J\x07"
CONTROL = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def check(text):
    assert not CONTROL.search(text), ascii(text)
    assert not any(line.startswith("rollcall: all is well") for line in text.splitlines()), text


def test_an_error_by_grpc_has_no_control_character_of_the_request(hung_daemon):
    for command, *rest in (
            ("stacks", HOSTILE), ("status", HOSTILE), ("report", HOSTILE), ("note", HOSTILE, "a"),
            ("acknowledge", HOSTILE), ("silence", "--end", HOSTILE), ("incidents", f"--cause={HOSTILE}"),
            ("stacks", b"\xff\xfe")):
        done = subprocess.run([ROLLCALL, command, f"--daemon={hung_daemon.address}", *rest], capture_output=True,
                              timeout=120, check=False)
        assert done.returncode != 0, command
        check((done.stdout + done.stderr).decode())


def get(address, posts):
    """Status and text of an answer."""
    request = urllib.request.Request(address, headers={"X-Rollcall": "1"} if posts else {}, data=b"" if posts else None)
    try:
        with urllib.request.urlopen(request, timeout=120) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def test_an_error_by_http_has_no_control_character_of_the_request(hung_daemon):
    for path in ("job?job=", "incident?id=", "incidents?cause=", "incidents?attempt=", "processes?job=a-job&ranks=",
                 "questions?by=", "silence/end?id="):
        for value in (HOSTILE.encode(), b"\xff\xfe"):
            status, text = get(f"{hung_daemon.page}/api/v1/{path}{urllib.parse.quote_from_bytes(value)}", "end" in path)
            assert status in (400, 404), path
            check(text)
