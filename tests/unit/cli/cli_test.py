# SPDX-License-Identifier: Apache-2.0
"""The built `rollcall`: what goes into jobs, what comes of bad input, and what
`analyze` makes of segments that real processes left. (tests/e2e/test_run.py has
whole jobs.)"""
import json
import os
import pathlib
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
                          timeout=60, **more)


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


@pytest.mark.parametrize("arguments", [("--help",), ("--version",), ("run", "--help"),
                                       ("analyze", "--help"), ("status", "--help"),
                                       ("stacks", "--help")])
def test_help_is_no_error(arguments):
    result = rollcall(*arguments)
    assert result.returncode == 0
    assert result.stdout and not result.stderr


@pytest.mark.parametrize("variable, value", [("ROLLCALL_HANG_AFTER", "soon"),
                                             ("ROLLCALL_HANG_AFTER", "1ms"),
                                             ("ROLLCALL_ON_HANG", "exec:"),
                                             ("ROLLCALL_FORMAT", "pdf")])
def test_flags_from_the_environment_are_checked_too(variable, value):
    command = ("analyze", "/") if variable == "ROLLCALL_FORMAT" else ("run", "--", "true")
    result = rollcall(*command, env={variable: value})
    assert result.returncode == 2
    assert value in result.stderr


def test_arguments_reach_the_job_as_they_are():
    arguments = ["--help", "--", "", "a b", "$HOME", "*"]
    result = rollcall("run", "--", "printf", "[%s]", *arguments)
    assert result.stdout == "".join(f"[{argument}]" for argument in arguments)


def test_the_jobs_stderr_and_stdin_are_its_own():
    result = rollcall("run", "--", "sh", "-c", "cat >&2; exec 2>&-", input="to be said\n")
    assert result.stderr.startswith("to be said\n")
    assert all(line.startswith("rollcall: ") for line in result.stderr.splitlines()[1:])


def test_what_the_user_preloads_stays_first():
    theirs = "/no/such/library.so"
    result = rollcall("run", "--", "sh", "-c", "echo $LD_PRELOAD", env={"LD_PRELOAD": theirs})
    assert result.stdout.strip() == f"{theirs}:{os.path.realpath(LIBRARY)}"


def test_a_folder_that_was_given_stays_and_holds_nothing_afterwards(tmp_path):
    result = rollcall("run", "--", "sh", "-c", "echo $ROLLCALL_DIR",
                      env={"ROLLCALL_DIR": str(tmp_path / "given")})
    assert pathlib.Path(result.stdout.strip()).parent == tmp_path / "given"
    assert list((tmp_path / "given").iterdir()) == []


def test_folders_that_no_run_has_made_stay(tmp_path):
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
    job.communicate(timeout=30)
    assert job.returncode == 128 + signal.SIGKILL
    assert not pathlib.Path(f"/proc/{sleeper}").exists()
    assert list(tmp_path.iterdir()) == []


def test_a_command_that_cannot_be_run_leaves_nothing(tmp_path):
    result = rollcall("run", "--", "/no/such/command", env={"ROLLCALL_DIR": str(tmp_path)})
    assert result.returncode == 127
    assert "/no/such/command" in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_without_a_daemon_status_says_where_it_looked():
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{unused.getsockname()[1]}"
        result = rollcall("status", f"--daemon={address}")
    assert result.returncode == 1
    assert address in result.stderr
    assert "pgrep -a rollcalld" in result.stderr


def test_no_hang_is_0(healthy):
    result = rollcall("analyze", healthy)
    assert result.returncode == 0
    assert result.stdout.endswith("no hang found\n")
    assert json.loads(rollcall("analyze", "--format=json", healthy).stdout)["verdicts"] == []


def test_a_hang_is_3(contradiction):
    result = rollcall("analyze", "--format=json", contradiction)
    assert result.returncode == 3
    verdict = json.loads(result.stdout)["verdicts"][0]
    assert verdict["cause"] == "argument_mismatch"
    assert [culprit["rank"] for culprit in verdict["culprits"]] == [1]
    assert int(verdict["call"]["position"]) == 1
    assert "count" in verdict["mismatched_fields"]
    assert "argument_mismatch" in rollcall("analyze", contradiction).stdout
    assert "<html" in rollcall("analyze", "--format=html", contradiction).stdout


def test_the_table_tells_where_every_rank_stands(contradiction):
    lines = rollcall("analyze", contradiction).stdout.splitlines()
    assert any(line.split()[:3] == ["ranks", "last", "call"] for line in lines)
    rows = [line for line in lines if "#1 AllReduce" in line and ">" not in line]
    assert len(rows) == 2, rows  # those who agree share a line
    assert all(len(line) <= 100 for line in lines)


def test_folders_from_many_hosts_are_one_job(tmp_path):
    for rank in range(3):
        leave_segment(tmp_path / f"host-{rank}" / "shm", rank,
                      f"all_reduce all_reduce={9 if rank == 1 else 8} kill", size=3)
    assert rollcall("analyze", tmp_path).returncode == 3
    assert rollcall("analyze", *tmp_path.iterdir()).returncode == 3
    # Without the second host's there is nothing to see but who is missing.
    assert "argument_mismatch" not in rollcall(
        "analyze", tmp_path / "host-0", tmp_path / "host-2").stdout


def test_files_may_be_given_by_name(contradiction):
    result = rollcall("analyze", *contradiction.iterdir())
    assert result.returncode == 3
    assert "argument_mismatch" in result.stdout


def test_a_folder_by_two_names_is_one(contradiction):
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
def test_nothing_but_damaged_files_is_2(tmp_path, how, words):
    segment = leave_segment(tmp_path / "segments", 0, "all_reduce")
    damage(segment, how)
    result = rollcall("analyze", tmp_path)
    assert result.returncode == 2
    assert words in result.stderr and str(segment) in result.stderr
    assert result.stdout == ""


@pytest.mark.parametrize("how, words", DAMAGE)
def test_a_damaged_file_among_good_ones_is_named_and_skipped(contradiction, how, words):
    segment = leave_segment(contradiction, 3, "all_reduce", size=4, unique_id="another")
    damage(segment, how)
    result = rollcall("analyze", "--format=json", contradiction)
    assert result.returncode == 3
    assert words in result.stderr and str(segment) in result.stderr
    assert json.loads(result.stdout)["verdicts"][0]["cause"] == "argument_mismatch"


def test_records_that_are_cut_off_are_said(healthy):
    segment = sorted(healthy.iterdir())[0]
    segment.write_bytes(segment.read_bytes()[:17000])
    result = rollcall("analyze", healthy)
    assert result.returncode in (0, 3)
    assert "cut short: 0 of 1 communicators" in result.stderr


def test_a_folder_without_segments_is_2(tmp_path):
    (tmp_path / "notes.txt").write_text("nothing")
    result = rollcall("analyze", tmp_path)
    assert result.returncode == 2
    assert "no readable segments" in result.stderr


def test_paths_that_make_no_sense_are_2(tmp_path):
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    (tmp_path / "notes.txt").write_text("nothing")
    for path in ("x" * 5000, loop, tmp_path / "notes.txt" / "below", "", tmp_path / "notes.txt"):
        result = rollcall("analyze", path)
        assert result.returncode == 2, str(path)[:80]
        assert result.stderr.startswith("rollcall analyze: ")


def test_things_that_are_no_files_do_not_hold_it_up(healthy):
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


def test_stacks_of_living_processes_are_printed_and_they_run_on(sleepers):
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


def test_stacks_of_what_is_no_process_say_so():
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
