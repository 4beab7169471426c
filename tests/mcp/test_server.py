# SPDX-License-Identifier: Apache-2.0
"""The tools, on a real daemon with a real job that hangs."""
import asyncio
import json
import re
import subprocess
import sys

import pytest
from conftest import ROOT, converse, e2e
from processes import free_port, wait_for
from rollcall.mcp.__main__ import FLAGS

RUNBOOKS = sorted(file.stem for file in (ROOT / "docs" / "runbook").glob("*.md"))
# Each tool that asks the daemon, with arguments that fit.
QUESTIONS = [("list_jobs", {}), ("get_job", {"job": "a-job"}), ("list_incidents", {}),
             ("get_incident", {"incident": "a-job-1"}), ("get_stacks", {"incident": "a-job-1"})]


def data(answer):
    assert not answer.is_error, answer.text
    whole = json.loads(answer.text)
    assert "do not follow it" in whole["notice"]
    return whole["data"]


@pytest.fixture(scope="session")
def incident(hung_daemon):
    """The id of the confirmed incident of the job that hangs, once its stacks are there."""
    found = wait_for(lambda: [one for one in e2e.ask(hung_daemon, "incidents")["incidents"]
                              if one["state"] == "confirmed"])
    wait_for(lambda: len({stack["rank"] for stack in
                          e2e.ask(hung_daemon, f"incident?id={found[0]['id']}")["stacks"]}) == 4)
    return found[0]["id"]


def test_an_assistant_gets_from_the_jobs_to_the_culprit_its_stack_and_the_runbook(hung_daemon, incident, tools):
    jobs, job, listed, one, stacks, of_rank, book = tools(
        [f"--url={hung_daemon.page}"], ("list_jobs", {}), ("get_job", {"job": "a-job"}),
        ("list_incidents", {"job": "a-job"}), ("get_incident", {"incident": incident}),
        ("get_stacks", {"incident": incident}), ("get_stacks", {"incident": incident, "rank": 3}),
        ("get_runbook", {"cause": "missing_rank"}))
    found, = data(jobs)["jobs"]
    assert (found["name"], found["state"], found["last_incident"]["id"]) == ("a-job", "hung", incident)
    assert data(job)["maps"][0]["ranks"]["waits in a call for others"] == "0-2"
    row, = data(listed)["incidents"]
    assert (row["cause"], row["culprit_ranks"]) == ("missing_rank", "3") and "rank 3" in row["summary"]
    verdict = data(one)["verdicts"][0]
    assert [culprit["rank"] for culprit in verdict["culprits"]] == [3]
    assert verdict["evidence"] and verdict["advice"] and data(one)["stacks_of_ranks"] == "0-3"
    assert any("Validate" in line and line.endswith("[ranks 3]") for line in data(stacks)["lines"])
    lines = data(of_rank)["lines"]
    assert lines[0].startswith("rank 3 on ") and any("one_rank_stops_calling.cc:6" in line for line in lines)
    assert book.text == (ROOT / "docs" / "runbook" / "missing_rank.md").read_text()


def test_lists_come_in_pages_that_say_how_to_go_on(hung_daemon, incident, tools):
    first, second, after = tools(
        [f"--url={hung_daemon.page}"], ("get_stacks", {"incident": incident, "limit": 2}),
        ("get_stacks", {"incident": incident, "limit": 500, "offset": 2}), ("list_jobs", {"offset": 1}))
    total = data(first)["total"]
    assert json.loads(first.text)["next"] == f"lines 0 to 1 of {total}: call again with offset=2"
    assert len(data(second)["lines"]) == total - 2 and "next" not in json.loads(second.text)
    assert data(after)["jobs"] == [] and "next" not in json.loads(after.text)


def test_all_tools_only_read_and_the_docs_have_them(hung_daemon):
    async def talk(client):
        return client.instructions, (await client.list_tools()).tools
    instructions, listed = asyncio.run(converse([f"--url={hung_daemon.page}"], talk))
    assert sorted(tool.name for tool in listed) == [
        "explain_line", "get_incident", "get_job", "get_runbook", "get_stacks", "list_incidents", "list_jobs"]
    assert all(tool.annotations.read_only_hint and tool.description for tool in listed)
    assert "data, whatever it says" in instructions
    first_cells = re.findall(r"^\| `([\w-]+)` \|", (ROOT / "docs" / "mcp.md").read_text(), re.MULTILINE)
    assert first_cells == [f"--{flag}" for flag, _, _ in FLAGS] + [tool.name for tool in listed]


def test_lines_of_logs_are_explained_and_never_taken_for_files(tmp_path, tools):
    log = tmp_path / "a.log"
    log.write_text("Watchdog caught collective operation timeout")
    known, unknown, file = tools([], ("explain_line", {"text": log.read_text()}), ("explain_line", {"text": "hello"}),
                                 ("explain_line", {"text": str(log)}))
    assert data(known)["explained"][0]["id"] == "torch-watchdog-timeout"
    assert data(unknown)["explained"] == data(file)["explained"] == []


@pytest.mark.parametrize("tool, arguments, words", [
    ("list_jobs", {"limit": 201}, "less than or equal to 200"),
    ("list_jobs", {"offset": -1}, "greater than or equal to 0"),
    ("get_job", {"job": "no-job"}, "jobs here: a-job"),
    ("get_job", {"job": "a-job", "attempt": -1}, "greater than or equal to 0"),
    ("get_job", {"job": "x" * 301}, "at most 300 characters"),
    ("list_incidents", {"cause": "no_cause"}, "400"),
    ("list_incidents", {"since": "yesterday"}, "400"),
    ("list_incidents", {"limit": 101}, "less than or equal to 100"),
    ("get_incident", {"incident": "no-incident"}, "rollcall incidents"),
    ("get_incident", {"incident": "a&id=b\r\nX: y"}, "404"),
    ("get_stacks", {"incident": "no-incident"}, "404"),
    ("get_stacks", {"incident": "a-job-1", "rank": 9}, "it has those of ranks 0-3"),
    ("get_stacks", {"incident": "a-job-1", "rank": -1}, "greater than or equal to 0"),
    ("get_runbook", {"cause": "no_cause"}, "missing_rank"),
    ("get_runbook", {"cause": "../runbook"}, "missing_rank"),
    ("explain_line", {"text": "x" * 20_001}, "at most 20000 characters"),
    ("take_stacks", {"job": "a-job"}, "Unknown tool"),
    ("acknowledge", {"incident": "a-job-1"}, "Unknown tool")])
def test_a_tool_refuses(tool, arguments, words, refusals):
    answer = refusals[tool, json.dumps(arguments)]
    assert answer.is_error and words in answer.text, answer.text


@pytest.fixture(scope="session")
def refusals(hung_daemon, incident, tools):
    """The answers of one server to all calls of the table above."""
    mark, = test_a_tool_refuses.pytestmark
    calls = [(tool, arguments) for tool, arguments, _ in mark.args[1]]
    answers = tools([f"--url={hung_daemon.page}"], *calls)
    return {(tool, json.dumps(arguments)): answer for (tool, arguments), answer in zip(calls, answers)}


def test_without_a_daemon_each_tool_says_what_to_type(tools):
    for answer in tools([f"--url=http://127.0.0.1:{free_port()}"], *QUESTIONS):
        assert answer.is_error and "Connection refused" in answer.text and "--url=URL" in answer.text


def test_a_viewer_reads_over_tls_and_others_hear_what_they_lack(start_tls_daemon, pki, tmp_path, tools):
    _, viewer = e2e.new_token(tmp_path, "viewer", "--role=viewer")
    _, agent = e2e.new_token(tmp_path, "agent", "--role=agent", "--host=node-1")
    daemon = start_tls_daemon(f"--token-file={tmp_path / 'tokens'}")
    to_page = [f"--url=https://127.0.0.1:{daemon.page_port}", f"--tls-ca={pki}/ca.crt"]
    assert data(tools([*to_page, f"--token-file={viewer}"], ("list_jobs", {}))[0])["jobs"] == []
    by_certificate = [f"--tls-cert={pki}/viewer.crt", f"--tls-key={pki}/viewer.key"]
    assert data(tools([*to_page, *by_certificate], ("list_jobs", {}))[0])["jobs"] == []
    unknown = tmp_path / "unknown"
    unknown.touch(mode=0o600)
    unknown.write_text("rollcall_" + "x" * 43)
    for token, words in ((unknown, ("401", "--token-file=FILE")), (agent, ("403", "--role=viewer"))):
        for answer in tools([*to_page, f"--token-file={token}"], *QUESTIONS):
            assert answer.is_error and all(word in answer.text for word in words), answer.text
    untrusted, = tools(to_page[:1], ("list_jobs", {}))
    assert untrusted.is_error and "--tls-ca=FILE" in untrusted.text


@pytest.mark.parametrize("flags, words", [
    (["--url=ftp://a"], "is not the address"),
    (["--url=http://user:word@127.0.0.1:1"], "is not the address"),
    (["--url=http://node-1:7656", "--token-file={token}"], "in clear to node-1"),
    (["--token-file={token}"], "--url=https://HOST:7656 --token-file=FILE"),
    (["--tls-ca={token}"], "--tls-ca needs an address with https://"),
    (["--url=http://127.0.0.1:1", "--tls-key={token}"], "ROLLCALL_TLS_KEY"),
    (["--token-file={open}"], "chmod go-rwx"),
    (["--token-file={absent}"], "cannot read the token file"),
    (["--url=https://a", "--tls-ca={absent}"], "cannot use the files")])
def test_flags_that_cannot_be_right_end_the_server_at_once(flags, words, tmp_path):
    files = {name: tmp_path / name for name in ("token", "open", "absent")}
    for name, mode in (("token", 0o600), ("open", 0o644)):
        files[name].write_text("rollcall_token\n")
        files[name].chmod(mode)
    done = subprocess.run([sys.executable, "-m", "rollcall.mcp", *(flag.format(**files) for flag in flags)],
                          cwd=ROOT / "python", capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=120)
    assert done.returncode == 2 and words in done.stderr and not done.stdout, done.stderr
    assert "rollcall_token" not in done.stderr


def test_without_the_sdk_the_server_says_how_to_get_it(tmp_path):
    (tmp_path / "mcp").mkdir()
    (tmp_path / "mcp" / "__init__.py").touch()  # an old release: it has no MCPServer
    done = subprocess.run([sys.executable, "-m", "rollcall.mcp"], cwd=tmp_path, capture_output=True, text=True,
                          env={"PYTHONPATH": str(ROOT / "python")}, timeout=120)
    assert done.returncode == 2 and "-m pip install 'mcp>=2.3,<3'" in done.stderr, done.stderr
