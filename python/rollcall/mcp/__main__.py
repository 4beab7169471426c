# SPDX-License-Identifier: Apache-2.0
"""rollcall-mcp: reads the flags, and serves an assistant over stdin and stdout until it closes them.

Exit 0: the assistant has ended. Exit 2: a flag, a file or the SDK is wrong or missing; one message gives the reason.
"""

import argparse
import importlib.metadata
import os
import sys

from rollcall.mcp.daemon_page import DEFAULT_URL, BadAddress, DaemonPage
from rollcall.mcp.token_file import TokenFileError, read_token

WITHOUT_SDK = """the Python package mcp, version 2.3 or a later 2, is missing: {}
  type:  {} -m pip install 'mcp>=2.3,<3'   (it needs Python 3.10 or later)"""
# Flag, default, what --help says. Each default may come from the environment, as for `rollcall`.
FLAGS = (
    ("url", DEFAULT_URL, "address of the daemon's page; with a token, name it"),
    ("token-file", "", "file with the token to show the daemon; refused if others may read it"),
    ("tls-ca", "", "file with the authority of the daemon's certificate, or system: those that this system trusts"),
    ("tls-cert", "", "file with the certificate to show the daemon"),
    ("tls-key", "", "file with the key of --tls-cert"),
)


def version():
    try:
        return importlib.metadata.version("rollcall")
    except importlib.metadata.PackageNotFoundError:
        return "of a checkout"


def parse_flags(words):
    parser = argparse.ArgumentParser(
        prog="rollcall-mcp", allow_abbrev=False,
        description="Lets an assistant read jobs, incidents, stacks and runbooks from a daemon. Changes nothing. "
                    "Speaks the Model Context Protocol on stdin and stdout: the assistant starts it.")
    parser.add_argument("-V", "--version", action="version", version=f"rollcall-mcp {version()}")
    for flag, default, words_of_help in FLAGS:
        variable = f"ROLLCALL_{flag.upper().replace('-', '_')}"
        parser.add_argument(f"--{flag}", default=os.environ.get(variable), metavar="TEXT",
                            help=f"{words_of_help} (Env:{variable})" + (f" (default: {default})" if default else ""))
    return parser.parse_args(words)


def fail(message):
    print(f"rollcall-mcp: {message}", file=sys.stderr)
    sys.exit(2)


def open_page(flags):
    try:
        if flags.token_file:
            read_token(flags.token_file)
        return DaemonPage(**{name: value for name, value in vars(flags).items() if value is not None})
    except (BadAddress, TokenFileError) as error:
        return fail(error)


def main(words=None):
    page = open_page(parse_flags(words))
    try:
        from rollcall.mcp.server import make_server
    except ImportError as error:
        fail(WITHOUT_SDK.format(error, sys.executable))
    make_server(page, version()).run("stdio")


if __name__ == "__main__":
    main()
