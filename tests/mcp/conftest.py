# SPDX-License-Identifier: Apache-2.0
"""A real daemon with a job that hangs, asked by the client of the SDK, which starts the server as an assistant does."""
import asyncio
import importlib.util
import pathlib
import sys

import pytest
from mcp import Client, StdioServerParameters

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python"))

# The fixtures of the end-to-end tests: services, daemons.
_spec = importlib.util.spec_from_file_location("e2e_conftest", ROOT / "tests" / "e2e" / "conftest.py")
e2e = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(e2e)
hung_daemon, start_daemon, start_tls_daemon = e2e.hung_daemon, e2e.start_daemon, e2e.start_tls_daemon
issued, pki = e2e.issued, e2e.pki
SECONDS = 60


class Answer:
    def __init__(self, result):
        self.is_error = result.is_error
        part, = result.content
        self.text = part.text


async def converse(flags, talk):
    server = StdioServerParameters(command=sys.executable, args=["-m", "rollcall.mcp", *map(str, flags)],
                                   env={"PYTHONPATH": str(ROOT / "python"), "PATH": f"{e2e.BUILD}/bin:/usr/bin:/bin"})
    async with Client(server, read_timeout_seconds=SECONDS) as client:
        return await talk(client)


@pytest.fixture(scope="session")
def tools():
    """tools(flags, (tool, arguments), ...) -> an Answer for each call"""

    def call(flags, *calls):
        async def talk(client):
            return [Answer(await client.call_tool(name, arguments)) for name, arguments in calls]
        return asyncio.run(converse(flags, talk))

    return call
