# SPDX-License-Identifier: Apache-2.0
"""Alerts to receivers of every new kind: mail over a real SMTP server, Opsgenie and Teams against the
contract that their makers document, and a file that says which incident goes where."""
import base64
import email
import email.policy
import hashlib
import hmac
import http.server
import json
import shutil
import subprocess
import threading
import urllib.parse

import pytest
from aiosmtpd.controller import Controller
from conftest import BUILD, wait_for
from processes import free_port

KEY = "0f3c-genie-key-secret"


class Mailbox:
    """A real SMTP server that keeps each mail, and a program like sendmail that sends to it."""

    def __init__(self, folder):
        self.mails = []
        port = free_port()  # aiosmtpd connects to the port that it is given: not 0
        self.controller = Controller(self, hostname="127.0.0.1", port=port)
        self.controller.start()
        self.sendmail = folder / "sendmail"
        self.sendmail.write_text(f"#!/bin/sh\nexec msmtp --file=/dev/null --host=127.0.0.1 --port={port} "
                                 '--from=rollcall@example.com "$@"\n')
        self.sendmail.chmod(0o755)

    async def handle_DATA(self, _server, _session, envelope):  # the name is aiosmtpd's
        mail = email.message_from_bytes(envelope.content, policy=email.policy.default)
        self.mails.append((envelope.rcpt_tos, mail))
        return "250 OK"


@pytest.fixture
def mailbox(tmp_path):
    assert shutil.which("msmtp"), "msmtp is missing:  deploy/setup.sh"
    box = Mailbox(tmp_path)
    yield box
    box.controller.stop()


class Service:
    """An HTTP server that keeps (method, path, headers, JSON) and checks each by a function."""

    def __init__(self, problem, port=0):
        self.taken, self.problems = [], []
        service = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def take(self):
                self.raw = self.rfile.read(int(self.headers["Content-Length"]))
                self.headers["Raw-Body"] = base64.b64encode(self.raw).decode()
                body = json.loads(self.raw)
                found = problem(self.command, self.path, self.headers, body)
                if found:
                    service.problems.append(found)
                else:
                    service.taken.append((self.command, self.path, self.headers, body))
                self.send_response(422 if found else 202)
                self.end_headers()

            do_POST = do_PUT = take

            def log_message(self, *_):
                pass

        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_port}"
        threading.Thread(target=self.http.serve_forever, daemon=True).start()

    def close(self):
        self.http.shutdown()
        self.http.server_close()


# https://docs.opsgenie.com/docs/alert-api: field, and its most characters.
OPSGENIE_CREATE = {"message": 130, "alias": 512, "description": 15000, "entity": 512, "source": 100,
                   "priority": 2, "details": 8000}


def opsgenie_problem(method, path, headers, body):
    if headers["Authorization"] != f"GenieKey {KEY}" or headers["Content-Type"] != "application/json":
        return f"headers {headers}"
    parts = urllib.parse.urlsplit(path)
    if (method, path) == ("POST", "/v2/alerts"):
        for field, value in body.items():
            text = "".join([*value, *value.values()]) if isinstance(value, dict) else value
            if field not in OPSGENIE_CREATE or len(text) > OPSGENIE_CREATE[field]:
                return f"{field}: {text}"
        return "" if body.get("message") else "no message"
    words = parts.path.split("/")
    if words[:3] != ["", "v2", "alerts"] or len(words) != 5 or parts.query != "identifierType=alias":
        return path
    fields = {"close": {"source", "note", "user"}, "notes": {"source", "note", "user"},
              "message": {"message"}, "description": {"description"}}
    return "" if set(body) <= fields.get(words[4], set()) else f"{path} {body}"


# Of https://adaptivecards.io/schemas/adaptive-card.json: type, and its keys.
CARD = {"AdaptiveCard": {"$schema", "version", "body", "actions", "msteams"},
        "RichTextBlock": {"inlines"}, "TextRun": {"text", "weight", "color"},
        "Action.OpenUrl": {"title", "url"}}
CHOICES = {"weight": {"Default", "Lighter", "Bolder"},
           "color": {"Default", "Dark", "Light", "Accent", "Good", "Warning", "Attention"}}


def card_problem(part):
    if set(part) - {"type"} - CARD.get(part.get("type"), set()):
        return f"{part}"
    for key, choices in CHOICES.items():
        if part.get(key, "Default") not in choices:
            return f"{key} of {part}"
    children = [*part.get("body", []), *part.get("inlines", []), *part.get("actions", [])]
    return next(filter(None, map(card_problem, children)), "")


def teams_problem(_method, _path, headers, body):
    if set(body) != {"type", "attachments"} or body["type"] != "message" or len(body["attachments"]) != 1:
        return f"{body}"
    attachment = body["attachments"][0]
    if attachment["contentType"] != "application/vnd.microsoft.card.adaptive":
        return attachment["contentType"]
    if int(headers["Content-Length"]) > 28_000:
        return "too long"
    return card_problem(attachment["content"])


@pytest.fixture
def opsgenie():
    service = Service(opsgenie_problem)
    yield service
    service.close()


@pytest.fixture
def teams():
    service = Service(teams_problem)
    yield service
    service.close()


def secret_file(path, text):
    path.touch(mode=0o600)
    path.write_text(text + "\n")
    return path


def words_of(card):
    return "\n".join("".join(run["text"] for run in block["inlines"]) for block in card["body"])


def test_a_mail_arrives_and_the_end_is_in_its_thread(start_daemon, start_job, mailbox):
    daemon = start_daemon("--alert=email=ops@example.com, second@example.com",
                          f"--alert-sendmail={mailbox.sendmail}")
    job = start_job(daemon, name="llm-pretrain")
    wait_for(lambda: mailbox.mails)
    to, first = mailbox.mails[0]
    assert to == ["ops@example.com", "second@example.com"]
    assert first["Subject"].startswith("[rollcall] llm-pretrain hangs: missing_rank")
    assert first["From"] and first["Date"] and first["Auto-Submitted"] == "auto-generated"
    text = first.get_content()
    assert text.startswith("llm-pretrain hung: 4 GPUs idle since ") and "Job: llm-pretrain\n" in text
    assert "Hosts: " in text and "Advice: " in text
    job.kill()
    wait_for(lambda: len(mailbox.mails) > 1)
    _, end = mailbox.mails[1]
    assert end["In-Reply-To"] == end["References"] == first["Message-ID"]
    assert end["Subject"] == f"Re: {first['Subject']}"
    assert end.get_content().startswith("llm-pretrain: the job ended while it hung, after ")
    daemon.end()
    assert len(mailbox.mails) == 2


@pytest.mark.long
def test_a_mail_that_fails_is_sent_again(start_daemon, start_job, mailbox, tmp_path):
    once = tmp_path / "fails-once"
    once.write_text(f"#!/bin/sh\n[ -e {tmp_path}/tried ] && exec {mailbox.sendmail} \"$@\"\n"
                    f"touch {tmp_path}/tried\nexit 75\n")
    once.chmod(0o755)
    daemon = start_daemon("--alert=email=ops@example.com", f"--alert-sendmail={once}")
    start_job(daemon)
    wait_for(lambda: mailbox.mails)
    assert "(email): the command failed" in daemon.end()
    assert len(mailbox.mails) == 1


def routes_file(tmp_path, opsgenie, teams):
    key = secret_file(tmp_path / "opsgenie-key", KEY)
    hook = secret_file(tmp_path / "teams-url", f"{teams.url}/workflows/hook-secret")
    path = tmp_path / "routes.yaml"
    path.write_text(f"""
receivers:
  - name: on-call
    kind: opsgenie
    file: {key}
    url: {opsgenie.url}
  - name: chat
    kind: teams
    file: {hook}
routes:
  - job: "llm-*"
    cause: missing_rank
    to: on-call
  - certainty: possible
    to: chat
""")
    return path


def test_each_incident_goes_where_its_route_leads(start_daemon, start_job, tmp_path, opsgenie, teams):
    daemon = start_daemon(f"--alert-routes={routes_file(tmp_path, opsgenie, teams)}",
                          "--page-url=https://rollcall.example")
    llm = start_job(daemon, name="llm-pretrain")
    vision = start_job(daemon, name="vision")
    wait_for(lambda: (opsgenie.taken or opsgenie.problems) and (teams.taken or teams.problems))
    created = opsgenie.taken[0][3]
    assert created["message"].startswith("llm-pretrain hung: 4 GPUs idle since ")
    assert created["details"]["job"] == "llm-pretrain" and created["details"]["hosts"]
    assert "Advice: " in created["description"]
    _, path, _, message = teams.taken[0]
    assert path == "/workflows/hook-secret"
    card = message["attachments"][0]["content"]
    assert "Job: vision\n" in words_of(card)
    assert card["actions"][0]["url"].startswith("https://rollcall.example/#/incident/vision-")
    llm.kill()
    vision.kill()
    wait_for(lambda: len(opsgenie.taken) > 1 and len(teams.taken) > 1)
    assert opsgenie.taken[1][1] == f"/v2/alerts/{created['alias']}/close?identifierType=alias"
    assert "the job ended while it hung" in words_of(teams.taken[1][3]["attachments"][0]["content"])
    said = daemon.end()
    assert (opsgenie.problems, teams.problems) == ([], [])
    assert len(opsgenie.taken) == len(teams.taken) == 2
    assert KEY not in said and "hook-secret" not in said


def start_wrongly(tmp_path, *flags):
    wrong = subprocess.run([BUILD / "bin" / "rollcalld", "--listen=127.0.0.1:0", "--http=none",
                            f"--report-dir={tmp_path / 'reports'}", *flags], capture_output=True,
                           text=True, timeout=120, check=False)
    assert wrong.returncode != 0
    return wrong.stdout + wrong.stderr


def test_a_mistake_in_the_routes_ends_the_start_with_its_line(tmp_path):
    path = tmp_path / "routes.yaml"
    path.write_text("receivers:\n  - name: chat\n    kind: slack\n    target: https://hooks/T0-secret\n"
                    "routes:\n  - to: chat\n")
    said = start_wrongly(tmp_path, f"--alert-routes={path}")
    assert f"--alert-routes: {path}: line 4: the target of slack" in said
    assert "file: /etc/rollcall/slack" in said and "T0-secret" not in said


def test_mail_without_a_program_that_sends_it_ends_the_start(tmp_path):
    said = start_wrongly(tmp_path, "--alert=email=ops@example.com", "--alert-sendmail=/no/sendmail")
    assert "cannot run /no/sendmail" in said and "--alert-sendmail=/usr/bin/msmtp" in said


SIGNING_KEY = base64.b64encode(b"a key of thirty-two bytes, or so").decode()


def event_problem(_method, _path, headers, body):
    """By https://www.standardwebhooks.com and the JSON format of CloudEvents 1.0."""
    if headers["Content-Type"] != "application/cloudevents+json; charset=utf-8":
        return f"headers {headers}"
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode()
    digest = hmac.digest(base64.b64decode(SIGNING_KEY), signed + base64.b64decode(headers["Raw-Body"]),
                         hashlib.sha256)
    if headers["webhook-signature"] != f"v1,{base64.b64encode(digest).decode()}":
        return "another signature"
    missing = [name for name in ("specversion", "id", "source", "type") if not body.get(name)]
    return f"no {missing}" if missing else ""


def test_signed_events_of_an_incident_arrive_in_order_after_a_receiver_was_away(
        start_daemon, start_job, tmp_path):
    port = free_port()  # no server listens
    key = secret_file(tmp_path / "signing-key", f"whsec_{SIGNING_KEY}")
    routes = tmp_path / "routes.yaml"
    routes.write_text(f"""
receivers:
  - name: bus
    kind: cloudevents
    target: http://127.0.0.1:{port}/events
    sign: {key}
routes:
  - to: bus
""")
    daemon = start_daemon(f"--alert-routes={routes}")
    job = start_job(daemon)
    incident = daemon.read_until(r"cannot deliver the alert of (a-job-\d+) .cloudevents, bus.")[1]
    for action in (f"acknowledge?id={incident}", f"note?id={incident}&text=link+on+node-1"):
        urllib.request.urlopen(urllib.request.Request(f"{daemon.page}/api/v1/incident/{action}", method="POST",
                                                      headers={"X-Rollcall": "1"}), timeout=120).close()
    job.kill()
    service = Service(event_problem, port)
    wait_for(lambda: len(service.taken) > 3)
    service.close()
    assert service.problems == []
    events = [body for _, _, _, body in service.taken]
    assert [event["type"] for event in events] == [
        "rollcall.incident.confirmed", "rollcall.incident.annotated", "rollcall.incident.annotated",
        "rollcall.incident.ended"]
    assert [event["id"] for event in events] == [f"{incident}/{number}" for number in (1, 2, 3, 4)]
    assert events[1]["data"]["acknowledged"]["who"] and events[1]["data"]["notes"] == []
    assert events[2]["data"]["notes"][0]["text"] == "link on node-1"
    assert events[0]["data"]["verdicts"][0]["cause"] == "missing_rank"
    assert SIGNING_KEY not in daemon.end()
