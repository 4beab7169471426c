# SPDX-License-Identifier: Apache-2.0
"""Tests of the built `rollcall`: the environment of jobs, bad input, and `analyze` on
segments that real processes left. (tests/e2e/commands/test_run.py has whole jobs.)"""
import hashlib
import json
import os
import pathlib
import re
import resource
import signal
import socket
import subprocess

import pytest

ROLLCALL = os.environ["CLI_TEST_ROLLCALL"]
LIBRARY = os.environ["CLI_TEST_LIBRARY"]
STEPS = os.environ["CLI_TEST_STEPS"]
STUBS = os.environ["CLI_TEST_STUBS"]


def rollcall(*arguments, env=None, **more):
    more.setdefault("capture_output", True)
    more.setdefault("text", True)
    return subprocess.run([ROLLCALL, *map(str, arguments)], env={**os.environ, **(env or {})},
                          timeout=120, **more)


def leave_segment(folder, rank, steps, size=2, unique_id="one for all"):
    """Runs a process that takes these steps under the library."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    before = set(folder.iterdir())
    subprocess.run([STEPS, "id", f"init={size},{rank}", *steps.split()], check=False, env={
        **os.environ, "LD_PRELOAD": LIBRARY, "LD_LIBRARY_PATH": STUBS, "ROLLCALL_DIR": str(folder),
        "RANK": str(rank), "WORLD_SIZE": str(size), "STUB_UNIQUE_ID": unique_id,
        "ROLLCALL_JOB": "a job"})
    (segment,) = set(folder.iterdir()) - before
    return segment


@pytest.fixture
def healthy(tmp_path):
    for rank in range(2):
        leave_segment(tmp_path / "segments", rank, "all_reduce all_reduce destroy")
    return tmp_path / "segments"


@pytest.fixture
def contradiction(tmp_path):
    for rank in range(3):
        count = 9 if rank == 1 else 8
        leave_segment(tmp_path / "hung", rank, f"all_reduce all_reduce={count} kill", size=3)
    return tmp_path / "hung"


@pytest.mark.parametrize("arguments", [("--help",), ("--version",), ("-V",), ("version",), ("run", "--help"),
                                       ("analyze", "--help"), ("status", "--help"), ("stacks", "--help")])
def test_help_exits_with_0_and_prints_on_stdout(arguments):
    result = rollcall(*arguments)
    assert result.returncode == 0
    assert result.stdout and not result.stderr


def subcommands():
    return re.findall(r"^  ([\w-]+)  +\w", rollcall("--help").stdout.split("Commands:")[1], re.MULTILINE)


def test_every_help_ends_with_examples_of_flags_that_it_has():
    for command in subcommands():
        flags, _, examples = rollcall(command, "--help").stdout.partition("\nExamples:\n")
        lines = [line for line in examples.splitlines() if re.match(r"  \S", line)]
        assert lines and all(f"rollcall {command}" in line for line in lines), command
        for own in re.findall(rf"rollcall {command}((?: --\S+)*)", examples):
            for flag in re.findall(r"--[\w-]+", own):
                assert re.search(rf"^  {flag}\b", flags, re.MULTILINE), (command, flag)


def test_the_flags_that_reach_a_daemon_come_last_in_a_group_of_their_own():
    for command in subcommands():
        own, _, last = rollcall(command, "--help").stdout.partition("\nTo reach a daemon:\n")
        assert not re.search(r"^  --(daemon|token-file)\b", own, re.MULTILINE), command
        assert ("--tls-ca" in last) == ("--tls-ca" in own + last) or command == "webhook", command


def test_the_usage_of_run_shows_the_command():
    assert "Usage: rollcall run [OPTIONS] COMMAND...\n" in rollcall("run", "--help").stdout
    assert "COMMAND is required" in rollcall("run").stderr


@pytest.mark.parametrize("command, script", [(["sh", "-c", "echo $ROLLCALL_JOB"], "sh"),
                                             (["sh", "train.sh"], "train")])
def test_a_job_has_the_name_of_its_script(command, script, tmp_path):
    (tmp_path / "train.sh").write_text("echo $ROLLCALL_JOB\n")
    result = rollcall("run", *command, cwd=tmp_path)
    assert re.fullmatch(rf"{script}-\d+", result.stdout.strip())


@pytest.mark.parametrize("variable, value", [("ROLLCALL_HANG_AFTER", "soon"),
                                             ("ROLLCALL_HANG_AFTER", "1ms"),
                                             ("ROLLCALL_ON_HANG", "exec:"),
                                             ("ROLLCALL_FORMAT", "pdf")])
def test_rollcall_checks_flags_from_the_environment(variable, value):
    command = ("analyze", "/") if variable == "ROLLCALL_FORMAT" else ("run", "--", "true")
    result = rollcall(*command, env={variable: value})
    assert result.returncode == 2
    assert value in result.stderr


def test_arguments_reach_the_job_unchanged():
    arguments = ["--help", "--", "", "a b", "$HOME", "*"]
    result = rollcall("run", "--", "printf", "[%s]", *arguments)
    assert result.stdout == "".join(f"[{argument}]" for argument in arguments)


def test_the_job_gets_stdin_and_stderr_of_the_run():
    result = rollcall("run", "--", "sh", "-c", "cat >&2; exec 2>&-", input="a line\n")
    assert result.stderr.startswith("a line\n")
    assert all(line.startswith("rollcall: ") for line in result.stderr.splitlines()[1:])


def test_the_users_preloaded_library_stays_first():
    theirs = "/no/such/library.so"
    result = rollcall("run", "--", "sh", "-c", "echo $LD_PRELOAD", env={"LD_PRELOAD": theirs})
    assert result.stdout.strip() == f"{theirs}:{os.path.realpath(LIBRARY)}"


def test_the_users_folder_stays_and_is_empty_afterwards(tmp_path):
    result = rollcall("run", "--", "sh", "-c", "echo $ROLLCALL_DIR",
                      env={"ROLLCALL_DIR": str(tmp_path / "given")})
    assert pathlib.Path(result.stdout.strip()).parent == tmp_path / "given"
    assert list((tmp_path / "given").iterdir()) == []


def test_a_run_keeps_folders_that_no_run_has_made(tmp_path):
    names = {"run-999999999-5", "run-of-somebody-else", f"run-{os.getpid()}-5"}
    for name in names:
        (tmp_path / name).mkdir()
    rollcall("run", "--", "true", env={"ROLLCALL_DIR": str(tmp_path)})
    assert {path.name for path in tmp_path.iterdir()} == names


def test_a_second_signal_ends_a_job_that_ignores_the_first(tmp_path):
    job = subprocess.Popen(
        [ROLLCALL, "run", "--", "sh", "-c",
         "trap '' INT TERM; sh -c 'echo $$; exec sleep 60' & wait; wait"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "ROLLCALL_DIR": str(tmp_path)})
    sleeper = job.stdout.readline().strip()
    job.send_signal(signal.SIGINT)
    job.send_signal(signal.SIGTERM)
    job.communicate(timeout=120)
    assert job.returncode == 128 + signal.SIGKILL
    assert not pathlib.Path(f"/proc/{sleeper}").exists()
    assert list(tmp_path.iterdir()) == []


def test_a_command_that_does_not_exist_leaves_no_folder(tmp_path):
    result = rollcall("run", "--", "/no/such/command", env={"ROLLCALL_DIR": str(tmp_path)})
    assert result.returncode == 127
    assert "/no/such/command" in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_without_a_daemon_status_names_the_address_and_the_next_command():
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{unused.getsockname()[1]}"
        result = rollcall("status", f"--daemon={address}")
    assert result.returncode == 1
    assert address in result.stderr
    assert "pgrep -a rollcalld" in result.stderr


def test_analyze_exits_with_0_without_a_hang(healthy):
    result = rollcall("analyze", healthy)
    assert result.returncode == 0
    assert result.stdout.endswith("no hang found\n")
    assert json.loads(rollcall("analyze", "--format=json", healthy).stdout)["verdicts"] == []


def test_analyze_exits_with_3_on_a_hang(contradiction):
    result = rollcall("analyze", "--format=json", contradiction)
    assert result.returncode == 3
    verdict = json.loads(result.stdout)["verdicts"][0]
    assert verdict["cause"] == "argument_mismatch"
    assert [culprit["rank"] for culprit in verdict["culprits"]] == [1]
    assert int(verdict["call"]["position"]) == 1
    assert "count" in verdict["mismatched_fields"]
    assert "argument_mismatch" in rollcall("analyze", contradiction).stdout
    assert "<html" in rollcall("analyze", "--format=html", contradiction).stdout


def test_the_table_shows_the_position_of_every_rank(contradiction):
    lines = rollcall("analyze", contradiction).stdout.splitlines()
    assert any(line.split()[:3] == ["ranks", "last", "call"] for line in lines)
    rows = [line for line in lines if "#1 AllReduce" in line and ">" not in line]
    assert len(rows) == 2, rows  # ranks that agree share a line
    assert all(len(line) <= 100 for line in lines)


RAS_HEAD = """NCCL version 2.26.2 compiled with CUDA 12.6
Job summary
Communicators... (0.00s)
#0-0 (fa93daea854b060b) MISMATCH
  Communicator ranks have different AllReduce operation counts
  3 ranks have launched up to operation 5
  Rank 3 has launched up to operation 4 -- GPU 3 managed by process 9 on node n
"""


def test_analyze_reads_huge_files_of_a_folder_in_little_memory(tmp_path):
    for name in ("ras.txt", "rank_3.log"):
        with open(tmp_path / name, "w") as file:
            file.write(RAS_HEAD if name == "ras.txt" else "ValueError: x\n")
            file.truncate(8 << 30)
    limit = 1 << 30
    result = rollcall("analyze", tmp_path,
                      preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)))
    assert result.returncode == 3, result.stderr
    assert f"{tmp_path}/ras.txt: only its first 4 MiB are read" in result.stderr
    assert "first error of rank 3: ValueError: x" in result.stdout


def test_analyze_joins_folders_from_many_hosts_into_one_job(tmp_path):
    for rank in range(3):
        leave_segment(tmp_path / f"host-{rank}" / "shm", rank,
                      f"all_reduce all_reduce={9 if rank == 1 else 8} kill", size=3)
    assert rollcall("analyze", tmp_path).returncode == 3
    assert rollcall("analyze", *tmp_path.iterdir()).returncode == 3
    # Without the segments of the second host only the missing rank shows.
    assert "argument_mismatch" not in rollcall(
        "analyze", tmp_path / "host-0", tmp_path / "host-2").stdout


def test_analyze_accepts_names_of_files(contradiction):
    result = rollcall("analyze", *contradiction.iterdir())
    assert result.returncode == 3
    assert "argument_mismatch" in result.stdout


def test_analyze_counts_a_folder_with_two_names_once(contradiction):
    def verdict(*paths):
        found = json.loads(rollcall("analyze", "--format=json", *paths).stdout)["verdicts"][0]
        return found["cause"], found["culprits"], found["waiting_ranks"]

    assert verdict(contradiction, f"{contradiction}/../hung") == verdict(contradiction)


def damage(segment, how):
    data = bytearray(segment.read_bytes())
    if how == "empty":
        data = b""
    elif how == "garbage":
        data = os.urandom(20000)
    elif how == "header cut off":
        data = data[:5000]
    elif how == "newer layout":
        data[8:12] = (99).to_bytes(4, "little")
    segment.write_bytes(data)


DAMAGE = [("empty", "cut short"), ("garbage", "not a Rollcall segment"),
          ("header cut off", "cut short"), ("newer layout", "segment layout 99")]


@pytest.mark.parametrize("how, words", DAMAGE)
def test_analyze_exits_with_2_if_all_files_are_damaged(tmp_path, how, words):
    segment = leave_segment(tmp_path / "segments", 0, "all_reduce")
    damage(segment, how)
    result = rollcall("analyze", tmp_path)
    assert result.returncode == 2
    assert words in result.stderr and str(segment) in result.stderr
    assert result.stdout == ""


@pytest.mark.parametrize("how, words", DAMAGE)
def test_analyze_names_and_skips_a_damaged_file(contradiction, how, words):
    segment = leave_segment(contradiction, 3, "all_reduce", size=4, unique_id="another")
    damage(segment, how)
    result = rollcall("analyze", "--format=json", contradiction)
    assert result.returncode == 3
    assert words in result.stderr and str(segment) in result.stderr
    assert json.loads(result.stdout)["verdicts"][0]["cause"] == "argument_mismatch"


def test_analyze_reports_cut_off_records(healthy):
    segment = sorted(healthy.iterdir())[0]
    segment.write_bytes(segment.read_bytes()[:17000])
    result = rollcall("analyze", healthy)
    assert result.returncode in (0, 3)
    assert "cut short: 0 of 1 communicators" in result.stderr


def test_analyze_exits_with_2_on_a_folder_without_segments(tmp_path):
    (tmp_path / "notes.txt").write_text("nothing")
    result = rollcall("analyze", tmp_path)
    assert result.returncode == 2
    assert "no readable segments" in result.stderr


def write_dump(path, completed):
    """A dump of a rank that has made `completed` all-reduces and waits in no other."""
    entries = [{"record_id": i, "pg_id": 0, "process_group": ["0", "default_pg"],
                "collective_seq_id": i + 1, "profiling_name": "nccl:all_reduce",
                "input_sizes": [[8]], "output_sizes": [[8]], "input_dtypes": ["Float"],
                "time_created_ns": 10**18 + i, "state": "completed" if i < 4 else "scheduled"}
               for i in range(completed)]
    config = {"0": {"name": "0", "desc": "default_pg", "ranks": "[0, 1, 2]"}}
    path.write_text(json.dumps({"version": "2.10", "pg_config": config, "entries": entries}))


def test_analyze_judges_dumps_and_segments_and_logs_together(contradiction, tmp_path):
    for rank, calls in enumerate((5, 5, 4)):
        write_dump(tmp_path / f"trace_rank_{rank}.json", calls)
    (tmp_path / "rank_2.log").write_text("2026-11-23 10:00:01 start\nValueError: bad batch\n")
    result = rollcall("analyze", "--format=json", contradiction, tmp_path)
    assert result.returncode == 3, result.stderr
    root = json.loads(result.stdout)["verdicts"][0]
    assert root["cause"] == "argument_mismatch"
    other = [line for line in root["missing_evidence"] if "dumps of the Flight Recorder" in line]
    assert len(other) == 1 and "rank 2" in other[0], root["missing_evidence"]
    assert any("first error of rank 2" in line and "ValueError: bad batch" in line
               for line in root["evidence"]), root["evidence"]


def test_analyze_takes_dumps_without_a_flag(tmp_path):
    for rank, calls in enumerate((5, 5, 4)):
        write_dump(tmp_path / f"trace_rank_{rank}.json", calls)
    root = json.loads(rollcall("analyze", "--format=json", tmp_path).stdout)["verdicts"][0]
    assert root["cause"] == "missing_rank"
    assert [culprit["rank"] for culprit in root["culprits"]] == [2]


RAS = """\
NCCL version 2.26.2 compiled with CUDA 12.6

Job summary
===========

Communicators... (0.00s)
=============

Warnings
========

#0-0 (fa93daea854b060b) MISMATCH
  Communicator ranks have different AllReduce operation counts
  30 ranks have launched up to operation 641
  Rank 12 has launched up to operation 640 -- GPU 4 managed by process 323032 on node node-17
"""


def test_analyze_takes_the_output_of_ras_alone_as_possible_only(tmp_path):
    (tmp_path / "ras.txt").write_text(RAS)
    result = rollcall("analyze", "--format=json", tmp_path / "ras.txt")
    assert result.returncode == 3, result.stderr
    root = json.loads(result.stdout)["verdicts"][0]
    assert (root["cause"], root["certainty"]) == ("missing_rank", "possible")
    (culprit,) = root["culprits"]
    assert (culprit["rank"], culprit["host"], culprit["pid"]) == (12, "node-17", 323032)
    assert any("one moment" in line for line in root["missing_evidence"])


def test_analyze_adds_what_ras_says_to_the_verdict_of_the_segments(contradiction, tmp_path):
    (tmp_path / "ras.txt").write_text(RAS)
    result = rollcall("analyze", "--format=json", contradiction, tmp_path / "ras.txt")
    assert result.returncode == 3, result.stderr
    root = json.loads(result.stdout)["verdicts"][0]
    assert (root["cause"], root["certainty"]) == ("argument_mismatch", "certain")
    assert any(line.startswith("RAS: different numbers of AllReduce calls") and "rank 12" in line
               for line in root["evidence"]), root["evidence"]


def test_analyze_says_that_dumps_and_segments_show_the_same(contradiction, tmp_path):
    for rank in range(3):
        dump = tmp_path / f"trace_rank_{rank}.json"
        write_dump(dump, 2)
        if rank == 1:
            dump.write_text(dump.read_text().replace("[[8]]", "[[9]]"))
    result = rollcall("analyze", "--format=json", tmp_path)
    root = json.loads(result.stdout)["verdicts"][0]
    assert (root["cause"], [c["rank"] for c in root["culprits"]]) == ("argument_mismatch", [1])
    assert root["culprits"][0]["pid"] > 0
    same = [line for line in root["evidence"] if "the dumps of the Flight Recorder show the same" in line]
    assert len(same) == 1, root


def test_analyze_exits_with_2_where_a_cut_off_dump_may_hide_the_hang(tmp_path):
    for rank in range(3):
        write_dump(tmp_path / f"trace_rank_{rank}.json", 4)
    assert rollcall("analyze", tmp_path).returncode == 0
    whole = (tmp_path / "trace_rank_2.json").read_text()
    (tmp_path / "trace_rank_2.json").write_text(whole[:len(whole) // 2])
    result = rollcall("analyze", tmp_path)
    assert result.returncode == 2, result.stdout
    assert "1 of the dumps cannot be read" in result.stderr
    assert "trace_rank_2.json" in result.stderr


def test_analyze_names_a_cut_off_dump_where_the_others_show_the_hang(tmp_path):
    for rank, calls in enumerate((5, 5, 4, 5)):
        write_dump(tmp_path / f"trace_rank_{rank}.json", calls)
    whole = (tmp_path / "trace_rank_3.json").read_text()
    (tmp_path / "trace_rank_3.json").write_text(whole[:len(whole) // 2])
    result = rollcall("analyze", "--format=json", tmp_path)
    assert result.returncode == 3, result.stderr
    assert "trace_rank_3.json" in result.stderr
    assert json.loads(result.stdout)["verdicts"][0]["culprits"][0]["rank"] == 2


def test_analyze_of_logs_alone_is_bad_input(tmp_path):
    (tmp_path / "train.log").write_text("[rank2]: ValueError: bad\n")
    assert rollcall("analyze", tmp_path / "train.log").returncode == 2


def test_analyze_exits_with_2_on_impossible_paths(tmp_path):
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    (tmp_path / "notes.txt").write_text("nothing")
    for path in ("x" * 5000, loop, tmp_path / "notes.txt" / "below", "", tmp_path / "notes.txt"):
        result = rollcall("analyze", path)
        assert result.returncode == 2, str(path)[:80]
        assert result.stderr.startswith("rollcall analyze: ")


def test_analyze_does_not_block_on_pipes_folders_and_devices(healthy):
    os.mkfifo(healthy / "1-2.seg")
    (healthy / "3-4.seg").mkdir()
    (healthy / "5-6.seg").symlink_to("/dev/zero")
    result = rollcall("analyze", healthy)
    assert result.returncode == 0
    for name in ("1-2.seg", "3-4.seg", "5-6.seg"):
        assert name in result.stderr


@pytest.fixture
def sleepers():
    """Two processes that sleep as ranks 5 and 6 of a job."""
    processes = [subprocess.Popen(["sleep", "60"], env={**os.environ, "RANK": str(rank)})
                 for rank in (5, 6)]
    while any(pathlib.Path(f"/proc/{p.pid}/comm").read_text() != "sleep\n" for p in processes):
        pass
    yield processes
    for process in processes:
        process.kill()
        process.wait()


def may_trace(pid):
    result = rollcall("stacks", pid)
    return result.returncode == 0 or "not permit" not in result.stderr


def test_stacks_prints_living_processes_which_keep_running(sleepers):
    if not may_trace(sleepers[0].pid):
        pytest.skip("this system does not permit tracing")
    pids = [p.pid for p in sleepers]
    each = rollcall("stacks", *pids)
    assert each.returncode == 0, each.stderr
    for pid, rank in zip(pids, (5, 6)):
        assert f"process {pid}, rank {rank}, 1 thread" in each.stdout
    assert each.stdout.count("nanosleep") >= 2
    merged = rollcall("stacks", "--merge", *pids)
    assert merged.stdout.startswith("[5-6] 2 ranks, 2 threads\n"), merged.stdout
    tree = json.loads(rollcall("stacks", "--format=json", *pids).stdout)
    assert (tree["ranks"], tree["threads"]) == ("5-6", 2)
    folded = rollcall("stacks", "--format=folded", *pids).stdout
    assert folded.splitlines()[-1].endswith(" 2") and ";" in folded
    assert rollcall("stacks", "--format=dot", *pids).stdout.startswith("digraph stacks {")
    assert all(process.poll() is None for process in sleepers)


@pytest.mark.parametrize("way", ["auto", "outside", "inside"])
def test_stacks_leaves_a_process_alone_that_switches_its_stacks_off(way):
    with subprocess.Popen(["sleep", "60"], env={**os.environ, "ROLLCALL_STACKS": "off"}) as process:
        result = rollcall("stacks", f"--way={way}", process.pid)
        process.kill()
    assert result.returncode == 1
    assert "switched off (ROLLCALL_STACKS=off in its environment)" in result.stderr


def write_report(folder, place, job="secret-job"):
    folder.mkdir()
    root = {"cause": "missing_rank", "certainty": "likely", "summary": f"rank 3 of {job} is late",
            "culprits": [{"rank": 3, "host": "node-17", "at": f"/x/train.py:212 in {place}"}]}
    (folder / "incident.json").write_text(json.dumps({"id": f"{job}-1", "job": job, "state": "confirmed",
                                                      "verdicts": [root], "look": {"why": "of a later release"}}))
    return folder


def test_a_report_on_disk_needs_no_daemon(tmp_path):
    folder = write_report(tmp_path / "a", "validate")
    shown = rollcall("report", folder, "--daemon=127.0.0.1:1")
    assert shown.returncode == 0, shown.stderr
    assert "secret-job" in shown.stdout and "node-17" in shown.stdout
    hidden = rollcall("report", folder, "--anonymize", f"--report-dir={tmp_path / 'for-others'}")
    assert hidden.returncode == 0, hidden.stderr
    for path in pathlib.Path(hidden.stdout.strip()).iterdir():
        assert "secret-job" not in path.read_text() and "node-17" not in path.read_text()


def test_two_reports_on_disk_are_compared(tmp_path):
    first, other = write_report(tmp_path / "a", "validate"), write_report(tmp_path / "b", "load")
    assert rollcall("compare", first, first / "incident.json").returncode == 0
    differ = rollcall("compare", first, other, "--format=json")
    assert differ.returncode == 3, differ.stderr
    facts = {fact["name"]: fact for fact in json.loads(differ.stdout)["facts"]}
    assert facts["at"]["differs"] and not facts["cause"]["differs"]


@pytest.mark.parametrize("damage, words", [
    (lambda file: file.unlink(), "no incident.json"),
    (lambda file: file.write_text(file.read_text()[:90]), "is damaged"),
    (lambda file: file.write_bytes(bytes(range(256))), "is damaged"),
    (lambda file: file.write_text("{}"), "holds no incident")])
@pytest.mark.parametrize("command", ["report", "compare"])
def test_a_damaged_report_is_named(tmp_path, command, damage, words):
    folder = write_report(tmp_path / "a", "validate")
    damage(folder / "incident.json")
    result = rollcall(command, *([folder] if command == "report" else [folder, folder]))
    assert result.returncode == 2 and words in result.stderr and str(folder) in result.stderr


HOSTILE = "\x1b[31mred\nrollcall: all is well\u202e\x9b2J\x07"


@pytest.mark.parametrize("arguments", [
    (HOSTILE,), ("stacks", "1", HOSTILE), ("stacks", f"--{HOSTILE}"), ("stacks", "--daemon=127.0.0.1:1", HOSTILE),
    ("stacks", "--daemon=127.0.0.1:1", b"\xff\xfe"), ("status", "--daemon=127.0.0.1:1", HOSTILE),
    ("status", f"--daemon={HOSTILE}"), ("report", "--daemon=127.0.0.1:1", HOSTILE),
    ("report", f"--format={HOSTILE}", "x"), ("analyze", f"/nowhere/{HOSTILE}"), ("man", HOSTILE),
    ("explain", f"/nowhere/{HOSTILE}"), ("run", f"--hang-after={HOSTILE}", "--", "true")])
def test_an_error_repeats_no_control_character_of_an_argument(arguments):
    result = subprocess.run([ROLLCALL, *arguments], capture_output=True, timeout=120, check=False)
    assert result.returncode != 0 and result.stderr
    text = result.stderr.decode()  # valid UTF-8
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", text), ascii(text)


@pytest.mark.parametrize("command", [("run", "--redact=(x", "--", "true"),
                                     ("analyze", "--redact=(x", "/nowhere")])
def test_a_wrong_pattern_of_redact_is_refused(command):
    result = rollcall(*command)
    assert result.returncode == 2
    assert "give an expression of RE2" in result.stderr


def test_stacks_reports_what_is_neither_a_job_nor_a_process():
    job = rollcall("stacks", "--daemon=127.0.0.1:1", "train")
    assert job.returncode == 1
    assert "no stacks of job train from the daemon at 127.0.0.1:1" in job.stderr
    assert "rollcall stacks PID" in job.stderr
    both = rollcall("stacks", os.getpid(), "train")
    assert both.returncode == 2 and "train: not a process number" in both.stderr
    gone = subprocess.Popen(["true"])
    gone.wait()
    ended = rollcall("stacks", gone.pid)
    assert ended.returncode == 1 and "has ended" in ended.stderr and ended.stdout == ""
    assert rollcall("stacks").returncode == 2


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


# The preloaded library, into a folder of an init container.

def test_the_library_is_put_into_a_folder_that_all_may_read(tmp_path):
    folder = tmp_path / "a" / "b"
    result = rollcall("install-library", folder, umask=0o077)
    assert (result.returncode, result.stdout) == (0, f"{folder}/librollcall.so\n"), result.stderr
    installed, = folder.iterdir()
    assert installed.read_bytes() == pathlib.Path(LIBRARY).read_bytes()
    assert installed.stat().st_mode & 0o777 == 0o755


def test_a_process_keeps_the_library_that_another_replaces(tmp_path):
    target = tmp_path / "librollcall.so"
    target.write_text("the library of the release before")
    with open(target) as in_use:
        assert rollcall("install-library", tmp_path).returncode == 0
        assert in_use.read() == "the library of the release before"
    assert target.read_bytes() == pathlib.Path(LIBRARY).read_bytes()


def test_a_folder_that_cannot_be_written_is_named_and_nothing_is_left(tmp_path):
    in_the_way = tmp_path / "file"
    in_the_way.touch()
    result = rollcall("install-library", in_the_way)
    assert result.returncode == 1
    assert f"cannot make {in_the_way}: Not a directory" in result.stderr
    (tmp_path / "folder" / "librollcall.so").mkdir(parents=True)
    assert rollcall("install-library", tmp_path / "folder").returncode == 1
    assert [file.name for file in (tmp_path / "folder").iterdir()] == ["librollcall.so"]


def install_for_pod(folder, **environment):
    return subprocess.run([ROLLCALL, "install-library", "--pod", folder], capture_output=True, text=True,
                          timeout=120, check=False, env={**environment, "RANK": "3", "SECRET": "x"})


def test_for_a_pod_the_loaders_file_and_the_pods_variables_come_with_the_library(tmp_path):
    result = install_for_pod(tmp_path, ROLLCALL_JOB="train", POD_NAME="train-0", NODE_NAME="a\nRANK=1")
    library = f"{tmp_path}/librollcall.so"
    assert (result.returncode, result.stdout) == (0, f"{library}\n"), result.stderr
    assert (tmp_path / "ld.so.preload").read_text() == f"{library}\n"
    assert sorted((tmp_path / "environment").read_text().splitlines()) == [
        "POD_NAME=train-0", "ROLLCALL_JOB=train", f"ROLLCALL_PRELOAD={library}"]
    assert all(file.stat().st_mode & 0o444 == 0o444 for file in tmp_path.iterdir()), "all users read them"


def test_links_in_the_folder_of_a_pod_are_replaced_and_not_followed(tmp_path):
    other, folder = tmp_path / "other", tmp_path / "folder"
    other.write_text("of somebody else")
    folder.mkdir()
    for name in ("ld.so.preload", "environment"):
        (folder / name).symlink_to(other)
    assert install_for_pod(folder, ROLLCALL_JOB="train").returncode == 0
    assert other.read_text() == "of somebody else"
    assert (folder / "ld.so.preload").read_text() == f"{folder}/librollcall.so\n"
    assert not any(file.is_symlink() for file in folder.iterdir())


def test_a_pod_starts_although_the_library_cannot_be_installed(tmp_path):
    (tmp_path / "librollcall.so").mkdir()
    result = install_for_pod(tmp_path, ROLLCALL_JOB="train")
    assert result.returncode == 0
    assert f"cannot replace {tmp_path}/librollcall.so: Is a directory" in result.stderr
    assert (tmp_path / "ld.so.preload").read_text() == "", "the loader loads nothing"
    assert not (tmp_path / "environment").exists()
    assert install_for_pod("/proc/none").returncode == 0
