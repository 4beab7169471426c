# SPDX-License-Identifier: Apache-2.0
"""Distributed jobs that nobody prepared, seen through a daemon and the agent of their host: they are listed as not
recorded, and `rollcall diagnose JOB --daemon=...` and the page look at one when an operator asks."""

import json
import os
import re
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from conftest import AS_NOBODY, BUILD, CLONE, ROLLCALL, ask, can_be_others, new_token, wait_for
from diagnosed_job import CANNOT_TELL, HANG, NOTHING, Look
from processes import free_port
from test_host_agent import CAPABILITIES, Host, can_unshare, daemon, host  # noqa: F401  (fixtures)

pytestmark = pytest.mark.skipif(os.geteuid() != 0 or not can_unshare(),
                                reason="needs root and the right to make pid and mount namespaces")

# Ranks that meet by sockets. The rank that is named waits for a pipe without a writer. Each says
# when it runs.
PROGRAM = """
import os, socket, sys
def wait_for_data():
    reads, writes = os.pipe()
    os.read(reads, 1)
def meet():
    a, b = socket.socketpair()
    a.recv(1)
def work():
    import time
    while True:
        sum(range(10000))
print("runs", file=sys.stderr, flush=True)
if os.environ.get("WORKS"):
    work()
wait_for_data() if os.environ["RANK"] in sys.argv[1:] else meet()
"""


@pytest.fixture
def start_ranks(host):
    def start(name, size, *stuck, env=None, before=(), log=None):
        program = host.folder / name
        program.write_text(PROGRAM)
        for rank in range(size):
            variables = [f"RANK={rank}", f"WORLD_SIZE={size}", "MASTER_ADDR=127.0.0.1", "MASTER_PORT=29500",
                         *(f"{key}={value}" for key, value in (env or {}).items())]
            run = [*before, "env", *variables, sys.executable, str(program), *map(str, stuck)]
            if log is None:
                host.start(*run).read_until("runs")
                continue
            path = Path(f"{log}.{rank}")
            host.start("sh", "-c", 'log=$1; shift; exec "$@" >"$log" 2>&1', "sh", str(path), *run)
            if not path.is_fifo():
                wait_for(lambda path=path: path.exists() and "runs" in path.read_text(), 30)

    return start


def unrecorded(daemon):
    return {job["name"]: job for job in ask(daemon, "jobs")["unrecorded"]}


def wait_for_job(daemon, name, ranks):
    return wait_for(lambda: (job := unrecorded(daemon).get(name)) is not None and job["ranks"] == ranks and job, 60)


def diagnose(daemon, job, *flags):
    return Look(ROLLCALL, job, f"--daemon={daemon.address}", *flags)


def test_the_stuck_rank_of_a_listed_job_is_named_on_request(host, daemon, start_ranks, tmp_path):
    host.agent(daemon, privileges=())
    start_ranks("train.py", 3, 1)
    job = wait_for_job(daemon, "train.py", 3)
    assert job["hosts"] == ["the-host"] and job["world_size"] == 3 and job["tenant"] == "default"
    shown = status(daemon)
    assert re.search(r"train\.py\s+not recorded: 3 ranks on 1 host", shown), shown
    assert "rollcall diagnose JOB --daemon=" in shown and "rollcall run COMMAND" in shown
    assert ask(daemon, "jobs")["jobs"] == []  # nothing of it is recorded

    look = diagnose(daemon, "train.py", f"--report-dir={tmp_path / 'kept'}")
    assert look.exit_code == HANG, look.text + look.errors
    assert look.culprits == (1,) and "wait_for_data" in look.verdict["summary"], look.verdict["summary"]
    assert look.verdict["certainty"] in ("likely", "possible")
    assert look.verdict["culprits"][0]["host"] == "the-host"
    folder, = (tmp_path / "kept").iterdir()
    assert {"incident.json", "report.txt", "report.html", "stacks.txt"} <= {file.name for file in folder.iterdir()}

    answer = post(daemon, "diagnose?job=train.py")
    assert [one["outcome"] for one in answer["jobs"]] == ["hangs"]
    assert answer["jobs"][0]["incident"]["verdicts"][0]["culprits"][0]["rank"] == 1
    assert daemon.read_until(r"audit: .*: diagnose, job train\.py, which is not recorded")


# As root, which acts as the job's user, and as the packages run it: then what the job's user owns is read.
@pytest.mark.parametrize("privileges", [(), pytest.param((*AS_NOBODY, *CAPABILITIES), marks=pytest.mark.long)],
                         ids=["root", "packaged"])
def test_a_look_has_the_ends_of_the_logs_of_the_ranks(host, daemon, start_ranks, tmp_path, privileges):
    host.agent(daemon, privileges=privileges)
    start_ranks("train.py", 3, 1, log=tmp_path / "log")
    (tmp_path / "log.1").write_text("x" * 100_000 + "\n\x1b[31mAPI_TOKEN\x1b[0m=abcdefgh12345678\nruns\n")
    wait_for_job(daemon, "train.py", 3)
    look = diagnose(daemon, "train.py", f"--report-dir={tmp_path / 'kept'}")
    logs = look.incidents[0]["look"]["logs"]
    assert len(logs) == 3 and logs[0]["ranks"] == [1], logs  # of the culprit first
    assert logs[0]["lines"] == ["API_TOKEN=[redacted]", "runs"], logs
    assert logs[0]["host"] == "the-host" and logs[0]["path"] == str(tmp_path / "log.1")
    assert "runs" in (next((tmp_path / "kept").iterdir()) / "logs.txt").read_text()
    answer = post(daemon, "diagnose?job=train.py")
    assert answer["jobs"][0]["logs"][0]["lines"][-1] == "runs", answer["jobs"][0]


def test_neither_a_pipe_nor_a_file_of_others_is_a_log(host, daemon, start_ranks, tmp_path):
    host.agent(daemon)
    os.mkfifo(tmp_path / "log.0")
    others = tmp_path / "log.1"
    others.write_text("of another user\n")
    os.chown(others, 1, 1)
    keeps_open = os.open(tmp_path / "log.0", os.O_RDWR)
    start_ranks("train.py", 3, 1, log=tmp_path / "log")
    wait_for_job(daemon, "train.py", 3)
    look = diagnose(daemon, "train.py")
    os.close(keeps_open)
    assert look.culprits == (1,), look.text + look.errors
    assert [log["ranks"] for log in look.incidents[0]["look"]["logs"]] == [[2]]


@pytest.mark.long
@pytest.mark.parametrize("where", ["--stacks=off", "--host-facts=off"])
def test_no_log_leaves_a_host_that_forbids_it(host, daemon, start_ranks, tmp_path, where):
    host.agent(daemon, where, privileges=())
    start_ranks("train.py", 2, 1, log=tmp_path / "log")
    wait_for_job(daemon, "train.py", 2)
    look = diagnose(daemon, "train.py")
    assert [log for one in look.incidents for log in one["look"]["logs"]] == []


@pytest.fixture
def start_ranks_with_ras(host, tmp_path):
    """Three ranks of which rank 1 is stopped, with this release of NCCL. RAS says that rank 1 is one call behind."""
    def start(release):
        library = tmp_path / f"libnccl.so.{release}"
        library.write_bytes((BUILD / "sim" / "libnccl.so.2").read_bytes())
        port, ranks = free_port(), []
        for rank in range(3):
            variables = [f"RANK={rank}", "WORLD_SIZE=3", "MASTER_ADDR=127.0.0.1", f"MASTER_PORT={port}",
                         f"NCCL_RAS_ADDR=localhost:{port}", f"LD_LIBRARY_PATH={BUILD / 'sim'}"]
            program = CLONE / "tests" / "support" / "rank_with_ras.py"
            service = host.start("env", *variables, "sh", "-c", 'exec "$@" >&2', "sh", sys.executable,
                                 str(program), str(library), str(tmp_path))
            pid = int(service.read_until(r"^\d+$").group())
            ranks.append({"rank": rank, "host": "10.0.0.1", "pid": pid, "cuda_dev": rank,
                          "collective_counts": {"AllReduce": 8811 if rank == 1 else 8812}})
        (tmp_path / "answer").write_text(json.dumps(
            {"nccl_version": release, "communicators": [{"hash": "0xa91f", "size": 3, "ranks": ranks}]}))
        subprocess.run(host.command("kill", "-STOP", str(ranks[1]["pid"])), check=True)

    return start


def asked_of_ras(folder):
    return (folder / "asked").read_text().splitlines() if (folder / "asked").exists() else []


@pytest.mark.parametrize("privileges", [(), pytest.param((*AS_NOBODY, *CAPABILITIES), marks=pytest.mark.long)],
                         ids=["root", "packaged"])
def test_a_look_has_the_counts_of_nccls_ras(host, daemon, start_ranks_with_ras, tmp_path, privileges):
    host.agent(daemon, privileges=privileges)
    start_ranks_with_ras("2.29.7")
    wait_for_job(daemon, "rank_with_ras.py", 3)
    assert asked_of_ras(tmp_path) == []  # nothing is taken from a job without being asked
    look = diagnose(daemon, "rank_with_ras.py", "--ras=never")
    assert look.culprits == (1,) and asked_of_ras(tmp_path) == []
    look = diagnose(daemon, "rank_with_ras.py")
    assert look.exit_code == HANG and look.culprits == (1,), look.text + look.errors
    evidence = "\n".join(look.verdict["evidence"])
    assert "NCCL's RAS blames the same" in evidence and "1 rank has launched 8811: rank 1 (process " in evidence
    assert look.verdict["certainty"] == "likely"
    assert asked_of_ras(tmp_path) == ["CLIENT PROTOCOL 2", "TIMEOUT 2", "SET FORMAT json", "VERBOSE STATUS"]
    verdict = post(daemon, "diagnose?job=rank_with_ras.py")["jobs"][0]["incident"]["verdicts"][0]
    assert any("NCCL's RAS blames the same" in line for line in verdict["evidence"])


@pytest.mark.long
def test_the_agent_asks_no_ras_that_a_question_could_end(host, daemon, start_ranks_with_ras, tmp_path):
    host.agent(daemon, privileges=())
    start_ranks_with_ras("2.27.3")
    wait_for_job(daemon, "rank_with_ras.py", 3)
    look = diagnose(daemon, "rank_with_ras.py")
    assert look.culprits == (1,), look.text + look.errors
    assert any("NCCL's RAS: it was not asked, because a question to the RAS of NCCL 2.27.3 could end the job" in line
               for line in look.verdict["missing_evidence"])
    assert asked_of_ras(tmp_path) == []


def test_a_job_that_works_is_no_hang(host, daemon, start_ranks):
    host.agent(daemon, privileges=())
    start_ranks("busy.py", 2, env={"WORKS": "1"})
    wait_for_job(daemon, "busy.py", 2)
    look = diagnose(daemon, "busy.py")
    assert look.exit_code == NOTHING, look.text + look.errors


def test_a_list_goes_with_its_agent(host, daemon, start_ranks):
    host.agent(daemon, privileges=())
    start_ranks("train.py", 2)
    wait_for_job(daemon, "train.py", 2)
    host.send("KILL", "rollcall-agent")
    wait_for(lambda: unrecorded(daemon) == {}, 30)
    look = diagnose(daemon, "train.py")
    assert look.exit_code == CANNOT_TELL and "that is not recorded" in look.errors


def test_an_agent_lists_nothing_where_that_is_off(host, daemon, start_ranks):
    host.agent(daemon, "--list-unrecorded=off", privileges=())
    start_ranks("train.py", 2)
    host.job("one_rank_stops_calling")
    wait_for(lambda: ask(daemon, "jobs")["jobs"], 30)
    assert unrecorded(daemon) == {}


def test_what_the_library_records_is_not_listed(host, daemon, start_ranks):
    host.agent(daemon, privileges=())
    start_ranks("train.py", 2)
    host.job("one_rank_stops_calling")
    wait_for_job(daemon, "train.py", 2)
    wait_for(lambda: ask(daemon, "jobs")["jobs"], 30)
    assert set(unrecorded(daemon)) == {"train.py"}
    look = diagnose(daemon, "a-job")
    assert look.exit_code == CANNOT_TELL and "is recorded" in look.errors


@pytest.mark.skipif(not can_be_others(), reason="needs another user")
def test_a_user_with_very_many_ranks_leaves_the_others_their_share(host, daemon, start_ranks):
    host.agent(daemon, privileges=())
    swarm = host.start(*AS_NOBODY, "sh", "-c", "i=0; while [ $i -lt 600 ]; do RANK=$i WORLD_SIZE=600 sleep 1000 & "
                       "i=$((i+1)); done; echo all >&2; wait")
    swarm.read_until("all")
    start_ranks("train.py", 3, 1)
    wait_for_job(daemon, "train.py", 3)
    others = [job for name, job in unrecorded(daemon).items() if name != "train.py"]
    assert 0 < sum(job["ranks"] for job in others) <= 256
    look = diagnose(daemon, "train.py")
    assert look.culprits == (1,), look.text + look.errors


def test_a_name_with_control_characters_arrives_clean(host, daemon, start_ranks):
    host.agent(daemon, privileges=())
    start_ranks("tr\x1b[2Jain\n.py", 2)
    job, = wait_for(lambda: list(unrecorded(daemon).values()), 60)
    assert not re.search(r"[\x00-\x1f\x7f]", job["name"]), job
    assert "\x1b" not in status(daemon)
    assert diagnose(daemon, job["name"]).exit_code in (CANNOT_TELL, NOTHING, HANG)


def test_only_an_operator_has_a_job_looked_at(host, start_daemon, start_ranks, tmp_path):
    viewer, viewer_file = new_token(tmp_path, "viewer", "--role=viewer")
    daemon = start_daemon(f"--token-file={tmp_path / 'tokens'}")
    host.agent(daemon, privileges=())
    start_ranks("train.py", 2, 1)
    wait_for_job(daemon, "train.py", 2)
    look = diagnose(daemon, "train.py", f"--token-file={viewer_file}")
    assert look.exit_code == CANNOT_TELL and "operator" in look.errors, look.errors
    with pytest.raises(urllib.error.HTTPError) as refused:
        post(daemon, "diagnose?job=train.py", {"Authorization": f"Bearer {viewer}"})
    assert refused.value.code == 403


def test_a_job_in_which_nobody_permits_stacks_cannot_be_told(host, daemon, start_ranks):
    host.agent(daemon, privileges=())
    start_ranks("train.py", 2, 1, env={"ROLLCALL_STACKS": "off"})
    wait_for_job(daemon, "train.py", 2)
    look = diagnose(daemon, "train.py")
    assert look.exit_code == CANNOT_TELL, look.text
    assert "ROLLCALL_STACKS=off" in look.text


@pytest.mark.parametrize("arguments, words", [
    (["--daemon=127.0.0.1:1"], "name one job"),
    (["--daemon=127.0.0.1:1", "--hosts=a", "job"], "leave out --hosts"),
    (["--daemon=127.0.0.1:1", "job"], "no look from the daemon"),
    (["--tenant=a", "job"], "--tenant is for --daemon"),
    (["--daemon=127.0.0.1:1", "--ras=always", "job"], "--ras=always is for this host"),
])
def test_bad_usage(arguments, words):
    look = Look(ROLLCALL, *arguments)
    assert look.exit_code == CANNOT_TELL and words in look.errors, look.errors


def status(daemon):
    return subprocess.run([ROLLCALL, "status", f"--daemon={daemon.address}"], capture_output=True, text=True,
                          timeout=60, check=True).stdout


def post(daemon, path, headers=None):
    request = urllib.request.Request(f"{daemon.page}/api/v1/{path}", method="POST",
                                     headers={"X-Rollcall": "1", **(headers or {})})
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)
