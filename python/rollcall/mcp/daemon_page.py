# SPDX-License-Identifier: Apache-2.0
"""Asks a daemon over HTTP: one GET at a time, bounded in time and size.

No request changes anything. No redirect is followed and no proxy is used, so the token reaches the host of the URL and
no other. The tools call this from several threads. Each failure is a PageError that says what failed, why, and what to
type next.
"""

import contextlib
import http.client
import ipaddress
import json
import socket
import ssl
import threading
import urllib.parse

from rollcall.mcp.answers import clean
from rollcall.mcp.token_file import TokenFileError, read_token

DEFAULT_URL = "http://127.0.0.1:7656"
STEP_SECONDS = 10  # to connect, or until the next bytes arrive
TOTAL_SECONDS = 30
MAX_BYTES = 32 << 20
MAX_ERROR_CHARACTERS = 600
REQUESTS_AT_ONCE = 4  # the daemon serves many people
NEXT = {
    401: "give the token of a viewer: rollcall-mcp --token-file=FILE; `rollcall token new --role=viewer` makes one",
    403: "use the token of a viewer that may see this tenant; `rollcall token new --role=viewer` makes one",
    429: "wait a minute, and check the token in --token-file",
    503: "try again later",
}


class PageError(Exception):
    """The daemon gave no answer."""


class BadAddress(Exception):
    """The flags do not name a daemon that may get the token."""


class DaemonPage:
    def __init__(self, url=None, token_file="", tls_ca="", tls_cert="", tls_key=""):
        """Without a URL: the page of a daemon on this host that needs no token."""
        self.parts = parse_url(DEFAULT_URL if url is None else url)
        self.url = (DEFAULT_URL if url is None else url).rstrip("/")
        self.token_file = token_file
        check_flags_of_tls(self.parts, tls_ca=tls_ca, tls_cert=tls_cert, tls_key=tls_key)
        check_reader_of_token(url, token_file)
        check_encryption(self.parts, token_file)
        self.tls = make_tls(tls_ca, tls_cert, tls_key) if self.parts.scheme == "https" else None
        self.turns = threading.BoundedSemaphore(REQUESTS_AT_ONCE)

    def get(self, path, **parameters):
        """The answer to GET /api/v1/PATH. Parameters that are empty or None are left out."""
        given = {name: value for name, value in parameters.items() if value not in ("", None)}
        target = f"{self.parts.path.rstrip('/')}/api/v1/{path}?{urllib.parse.urlencode(given)}"
        with self.turns:
            return read_json(*self._ask(target), self.url)

    def _ask(self, target):
        """Status, headers and body of the answer."""
        connection = self._connection()
        try:
            with limited() as connected:
                connection.connect()
                connected(connection.sock)
                connection.request("GET", target, headers=self._headers())
                answer = connection.getresponse()
                return answer.status, answer.headers, read_body(answer)
        except TimeoutError as error:
            raise PageError(f"the daemon at {self.url} did not answer within {STEP_SECONDS} s\n"
                            f"  look for the reason:  curl {self.url}/healthz") from error
        except ssl.SSLCertVerificationError as error:
            raise PageError(f"cannot trust the certificate of {self.url}: {error.verify_message}\n"
                            "  name the file with its authority:  rollcall-mcp --tls-ca=FILE") from error
        except (OSError, http.client.HTTPException, ValueError) as error:  # ValueError: no number before a chunk
            raise PageError(f"cannot reach the daemon's page at {self.url}: {clean(str(error) or repr(error))}\n"
                            "  is rollcalld running, with --http?  Name its page:  rollcall-mcp --url=URL") from error
        finally:
            connection.close()

    def _connection(self):
        host, port = self.parts.hostname, self.parts.port
        if self.tls:
            return http.client.HTTPSConnection(host, port, timeout=STEP_SECONDS, context=self.tls)
        return http.client.HTTPConnection(host, port, timeout=STEP_SECONDS)

    def _headers(self):
        """Reads the token for each request, because tokens are renewed."""
        headers = {"Accept": "application/json", "Connection": "close"}
        if self.token_file:
            try:
                headers["Authorization"] = f"Bearer {read_token(self.token_file)}"
            except TokenFileError as error:
                raise PageError(str(error)) from error
        return headers


def parse_url(url):
    try:
        parts = urllib.parse.urlsplit(url)
        usable = parts.scheme in ("http", "https") and parts.hostname and (parts.port or True)
    except ValueError:
        usable = False
    if not usable or parts.username is not None or parts.query or parts.fragment:
        raise BadAddress(f"{clean(url)} is not the address of a daemon's page\n"
                         "  the form is:  --url=https://rollcall.example:7656")
    return parts


def check_flags_of_tls(parts, **files):
    given = [f"--{name.replace('_', '-')}" for name, file in files.items() if file]
    if given and parts.scheme == "http":
        raise BadAddress(f"{given[0]} needs an address with https://; with http:// nothing is encrypted\n"
                         f"  type:  rollcall-mcp --url=https://HOST:7656 {given[0]}=FILE   (or set ROLLCALL_URL)\n"
                         f"  without TLS:  leave {' '.join(given)} out (in the environment: {variables(given)})")


def variables(flags):
    return " ".join(f"ROLLCALL_{flag.strip('-').replace('-', '_').upper()}" for flag in flags)


def check_reader_of_token(url, token_file):
    """Any user of this host may listen at the default address, so no token goes there unasked."""
    if token_file and url is None:
        raise BadAddress("a token goes only to a daemon that you name: any user of this host could listen at "
                         f"{DEFAULT_URL}\n"
                         "  type:  rollcall-mcp --url=https://HOST:7656 --token-file=FILE   (or set ROLLCALL_URL)\n"
                         "  for your own daemon on this host, which needs no token:  leave --token-file out "
                         "(in the environment: ROLLCALL_TOKEN_FILE)")


def check_encryption(parts, token_file):
    if token_file and parts.scheme == "http" and not is_this_host(parts.hostname):
        raise BadAddress(f"the token would cross the network in clear to {parts.hostname}\n"
                         "  use an address with https://, and start rollcalld with --tls-cert and --tls-key")


def is_this_host(name):
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return name == "localhost"


def make_tls(authority, certificate, key):
    """Trusts the authority in this file; those of the system for "" and "system"."""
    try:
        tls = ssl.create_default_context(cafile=None if authority in ("", "system") else authority)
        if certificate:
            tls.load_cert_chain(certificate, key or None)
        return tls
    except (OSError, ssl.SSLError) as error:
        raise BadAddress(f"cannot use the files of --tls-ca, --tls-cert and --tls-key: {error}") from error


@contextlib.contextmanager
def limited():
    """Ends the connection after TOTAL_SECONDS, however slowly bytes arrive. Then whatever came of it is no answer.

    Give the socket to the function that it yields as soon as it is connected: before that there is nothing to end.
    """
    late = threading.Event()
    sockets = []  # the connection itself forgets its socket when the answer begins

    def end():
        late.set()
        for one in sockets:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def connected(one):
        sockets.append(one)
        if late.is_set():
            raise TimeoutError

    timer = threading.Timer(TOTAL_SECONDS, end)
    timer.daemon = True
    timer.start()
    try:
        yield connected
    except (OSError, http.client.HTTPException, ValueError):
        if not late.is_set():
            raise
    finally:
        timer.cancel()
    if late.is_set():
        raise PageError(f"the daemon did not finish its answer within {TOTAL_SECONDS} s\n  try again later")


def read_body(answer):
    body = b""
    while chunk := answer.read1(1 << 16):
        body += chunk
        if len(body) > MAX_BYTES:
            raise PageError(f"the daemon's answer has more than {MAX_BYTES >> 20} MiB\n"
                            "  ask for less, or read the report:  rollcall report ID")
    return body


def read_json(status, headers, body, url):
    if status != 200:
        raise PageError(explain_status(status, headers, body, url))
    try:
        answer = json.loads(body)
    except ValueError:
        answer = None
    if not isinstance(answer, dict):
        raise PageError(f"{url} answered, but not as a daemon's page does\n  check the address:  curl {url}/healthz")
    return answer


def explain_status(status, headers, body, url):
    if 300 <= status < 400:
        target = clean(headers.get("Location", "another address"))[:200]
        return (f"{url} leads to {target}, and rollcall-mcp follows no address that an answer names\n"
                "  if you trust it, start rollcall-mcp with this address as --url")
    words = clean(body.decode(errors="replace").strip())[:MAX_ERROR_CHARACTERS]
    text = f"the daemon answered with {status} and these words, which are data: {json.dumps(words, ensure_ascii=False)}"
    return f"{text}\n  {NEXT[status]}" if status in NEXT else text
