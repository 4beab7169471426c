# SPDX-License-Identifier: Apache-2.0
"""The secrets of alert receivers: --alert=KIND=@FILE keeps them out of what others can see, and where
nobody looks for a secret there is none."""
import http.server
import re
import subprocess
import threading
import urllib.request

import pytest
from conftest import BUILD, long, rollcall, seen_by_ps, wait_for

SECRET = "T0/B0/hook-secret-"


class Receiver:
    """A server that keeps the paths of what it gets, and refuses the first one."""

    def __init__(self):
        self.paths = []
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                self.rfile.read(int(self.headers["Content-Length"]))
                receiver.paths.append(self.path)
                self.send_response(503 if len(receiver.paths) == 1 else 200)
                self.end_headers()

            def log_message(self, *_):
                pass

        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_port}/{SECRET}"
        threading.Thread(target=self.http.serve_forever, daemon=True).start()

    def close(self):
        self.http.shutdown()
        self.http.server_close()


@pytest.fixture
def receivers():
    both = [Receiver(), Receiver()]
    yield both
    for receiver in both:
        receiver.close()


def secret_file(path, text):
    path.touch(mode=0o600)
    path.write_text(text + "\n")
    return path


def read_page(daemon, path):
    with urllib.request.urlopen(f"{daemon.page}{path}", timeout=120) as answer:
        return answer.read().decode(errors="replace")


def test_the_secret_of_a_receiver_is_seen_nowhere(start_daemon, start_job, tmp_path, receivers):
    asked, slack = receivers
    # The command lives long enough to be looked at. Its secret is as one in `curl -H "..."` would be.
    command = secret_file(tmp_path / "command",
                          f"test {SECRET}of-command && cat > {tmp_path / 'body'} && sleep 20")
    daemon = start_daemon(
        f"--alert=json=@{secret_file(tmp_path / 'json', asked.url + 'of-json')}",
        f"--alert=slack=@{secret_file(tmp_path / 'slack', slack.url + 'of-slack')}",
        f"--alert=exec=@{command}", f"--history={tmp_path / 'history.db'}")
    job = start_job(daemon)
    wait_for(lambda: len(asked.paths) > 1 and len(slack.paths) > 1)
    assert set(asked.paths) == {f"/{SECRET}of-json"}, "the secret is in use"
    assert set(slack.paths) == {f"/{SECRET}of-slack"}

    def look_at_the_command():
        try:
            seen = seen_by_ps(daemon.process.pid)
        except FileNotFoundError:  # a process has just ended
            return None
        return seen if "sleep\0" in seen else None
    seen = wait_for(look_at_the_command)
    assert f"=exec=@{command}\0" in seen
    assert SECRET not in seen
    shown = [read_page(daemon, path) for path in (
        "/api/v1/jobs", "/api/v1/status?job=a-job", "/api/v1/incidents",
        "/api/v1/incident?id=a-job-1", "/metrics", "/healthz", "/report?id=a-job-1")]
    assert "rollcall_alerts_sent_total" in shown[4] and "a-job" in shown[3]
    for command in (["status", "a-job"], ["incidents"], ["report", "a-job-1"]):
        shown.append(rollcall(*command, f"--daemon={daemon.address}").stdout)
    job.kill()
    said = daemon.end()
    assert {"json", "slack"} <= set(re.findall(r"cannot deliver the alert of \S+ \((\w+)\)", said))
    files = [path for path in (tmp_path / "daemon-reports").rglob("*") if path.is_file()]
    files += tmp_path.glob("history.db*")
    assert {"incident.json", "history.db"} <= {path.name for path in files}
    for text in [said, *shown, (tmp_path / "body").read_text(),
                 *(path.read_text(errors="replace") for path in files)]:
        assert SECRET not in text


@pytest.mark.parametrize("kind", ["json", *map(long, ("slack", "teams", "alertmanager"))])
def test_the_secret_of_a_receiver_that_is_away_is_not_in_the_log(start_daemon, start_job, tmp_path,
                                                               kind):
    url = secret_file(tmp_path / "url", f"http://127.0.0.1:1/{SECRET}of-{kind}")
    daemon = start_daemon(f"--alert={kind}=@{url}")
    start_job(daemon)
    daemon.read_until("cannot deliver the alert of")
    said = daemon.end()
    assert kind in said and SECRET not in said


def test_a_new_secret_needs_no_restart(start_daemon, start_job, tmp_path, receivers):
    receiver = receivers[0]
    file = secret_file(tmp_path / "url", receiver.url + "old")
    daemon = start_daemon(f"--alert=json=@{file}")
    start_job(daemon)
    wait_for(lambda: receiver.paths)  # it is refused
    file.write_text(receiver.url + "new\n")
    wait_for(lambda: len(receiver.paths) > 1)
    assert receiver.paths[:2] == [f"/{SECRET}old", f"/{SECRET}new"]


def test_a_mistake_in_the_flag_does_not_show_the_secret(tmp_path):
    wrong = subprocess.run([BUILD / "bin" / "rollcalld", "--listen=127.0.0.1:0", "--http=none",
                            f"--alert=slak=https://hooks.example/{SECRET}",
                            f"--report-dir={tmp_path / 'reports'}"], capture_output=True, text=True,
                           timeout=120, check=False)
    assert wrong.returncode != 0
    assert "a secret is best in a file:  --alert=slack=@" in wrong.stderr
    assert SECRET not in wrong.stdout + wrong.stderr
