# SPDX-License-Identifier: Apache-2.0
"""A server of the Model Context Protocol (MCP), through which assistants read what a daemon has found out.

It reads the daemon's HTTP API and changes nothing. `python -m rollcall.mcp` and `rollcall-mcp` start it. It needs the
SDK, `pip install 'mcp>=2.3,<3'`; only server.py imports the SDK.
"""
