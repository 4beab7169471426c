# SPDX-License-Identifier: Apache-2.0
"""`rollcall run` as a wrapper: input and output of the job are unchanged, and no fault of
Rollcall or its flags harms the job."""
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys

import pytest
from conftest import ROLLCALL, VICTIMS, wait_for


def rollcall(*arguments, env=None, **more):
    more.setdefault("capture_output", True)
    return subprocess.run([ROLLCALL, *arguments], env={**os.environ, **(env or {})}, timeout=120,
                          **more)


FOLDERS = pathlib.Path(f"/dev/shm/rollcall-{os.geteuid()}")


def folders(job, base=FOLDERS):
    """The folders of this run. Other jobs may have folders of their own."""
    return list(base.glob(f"run-{job.pid}-*"))


def rank_pids(job):
    """The processes that have a segment in the folder of this run."""
    return [int(segment.name.partition("-")[0])
            for folder in folders(job) for segment in folder.glob("*.seg")]


@pytest.mark.parametrize("arguments, words", [
    ((), b"no command given"),
    (("nonsense",), b"no command 'nonsense'"),
    (("run",), b"COMMAND is required"),
    (("run", "--"), b"COMMAND is required"),
    (("run", "--bogus", "--", "true"), b"--bogus"),
    (("run", "--hang-after=soon", "--", "true"), b"soon is not a time"),
    (("run", "--on-hang=explode", "--", "true"), b"explode"),
    (("analyze",), b"PATH is required"),
    (("analyze", "--format=pdf", "/tmp"), b"pdf"),
    (("analyze", "/no/such/folder"), b"no such file or folder"),
])
def test_run_refuses_wrong_use_before_the_job_starts(arguments, words):
    result = rollcall(*arguments)
    assert result.returncode == 2
    assert words in result.stderr
    assert result.stdout == b""


@pytest.mark.parametrize("command, code", [
    (["sh", "-c", "exit 7"], 7),
    (["sh", "-c", "kill -SEGV $$"], 128 + signal.SIGSEGV),
    (["no-such-command"], 127),
    (["/etc/passwd"], 126),
])
def test_run_exits_with_the_exit_code_of_the_job(command, code):
    assert rollcall("run", "--", *command).returncode == code


def test_no_mark_is_needed_before_the_command():
    result = rollcall("run", "--hang-after", "5s", "sh", "-c", "echo $1; exit 7", "sh", "--help")
    assert (result.returncode, result.stdout) == (7, b"--help\n")


def test_input_and_output_pass_through_unchanged():
    data = bytes(range(256)) * 1000
    result = rollcall("run", "--", "cat", input=data)
    assert result.stdout == data


def test_one_line_reports_a_job_without_nccl():
    said = rollcall("run", "--", "true").stderr
    assert said.count(b"\n") == 1
    assert b"the job loaded the library but created no communicator of NCCL, MPI or gloo" in said


def test_one_line_reports_a_program_that_cannot_be_preloaded(tmp_path):
    source = tmp_path / "static.c"
    source.write_text("int main(void) { return 0; }\n")
    subprocess.run(["gcc", "-static", "-o", tmp_path / "static", source], check=True)
    said = rollcall("run", "--", tmp_path / "static").stderr
    assert said.count(b"\n") == 1
    assert b"did not load the library" in said


def test_without_a_writable_report_folder_run_warns_and_prints_the_report(tmp_path):
    (tmp_path / "file").write_text("")
    result = rollcall("run", "--sim", "--hang-after=600s", "--on-hang=abort",
                      f"--report-dir={tmp_path / 'file' / 'reports'}", "--", VICTIMS / "ranks",
                      "-n", "4", "--keep-going", "--", VICTIMS / "one_rank_broadcasts", text=True)
    assert result.returncode == 75
    assert "the report will be printed here" in result.stderr
    assert "operation_mismatch" in result.stderr


def test_on_a_taken_port_the_job_runs_without_the_page():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        result = rollcall("run", f"--http=127.0.0.1:{taken.getsockname()[1]}", "--", "echo", "ran")
    assert result.returncode == 0
    assert result.stdout == b"ran\n"
    assert b"cannot serve pages" in result.stderr


@pytest.mark.parametrize("folder", ["/proc/no-such-folder", "/etc/passwd"])
def test_without_a_segment_folder_the_job_runs_unrecorded(folder):
    result = rollcall("run", "--", "echo", "ran", env={"ROLLCALL_DIR": folder})
    assert result.returncode == 0
    assert result.stdout == b"ran\n"
    assert b"the job runs without Rollcall" in result.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a file system needs root")
def test_on_a_full_file_system_the_job_runs_unrecorded(tmp_path):
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", tmp_path],
                      stderr=subprocess.DEVNULL).returncode != 0:
        pytest.skip("this sandbox does not let root mount a file system")
    try:
        (tmp_path / "filler").write_bytes(bytes(48 * 1024))
        result = rollcall("run", "--sim", "--", VICTIMS / "ranks", "-n", "2", "--",
                          VICTIMS / "healthy_mix", env={"ROLLCALL_DIR": str(tmp_path)})
        assert result.returncode == 0, result.stderr
        assert b"not recording, training unaffected" in result.stderr
    finally:
        subprocess.run(["umount", tmp_path], check=True)


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_job_and_run_removes_its_files(how):
    job = subprocess.Popen([ROLLCALL, "run", "--sim", "--", VICTIMS / "ranks", "-n", "4", "--",
                            VICTIMS / "one_rank_stops_calling"], stderr=subprocess.PIPE)
    wait_for(lambda: len(rank_pids(job)) == 4)
    ranks = rank_pids(job)
    job.send_signal(how)
    job.communicate(timeout=120)
    assert job.returncode == 128 + how
    for pid in ranks:
        assert not pathlib.Path(f"/proc/{pid}").exists()
    assert folders(job) == []


def inheriting(ignored=(), blocked=()):
    """A prefix for a command: starts it with these signals, and resets none of them."""
    script = ("import os, signal, sys\n"
              "for number in range(1, signal.SIGRTMIN):\n"
              f"  if number in {[int(how) for how in ignored]}: "
              "signal.signal(number, signal.SIG_IGN)\n"
              "  elif number not in (9, 19, 32, 33): signal.signal(number, signal.SIG_DFL)\n"
              f"signal.pthread_sigmask(signal.SIG_SETMASK, {[int(how) for how in blocked]})\n"
              "os.execv(sys.argv[1], sys.argv[1:])\n")
    return [sys.executable, "-c", script]


@pytest.mark.parametrize("ignored, blocked", [
    ((), ()),
    ((signal.SIGINT, signal.SIGQUIT), ()),
    ((signal.SIGHUP, signal.SIGPIPE, signal.SIGCHLD, signal.SIGUSR1), ()),
    ((), (signal.SIGTERM, signal.SIGINT, signal.SIGUSR2)),
], ids=["none", "in_the_background", "ignored", "blocked"])
def test_the_job_gets_the_same_signals_as_without_rollcall(ignored, blocked):
    shown = ["/bin/grep", "-E", "^Sig(Blk|Ign)", "/proc/self/status"]
    alone = subprocess.run([*inheriting(ignored, blocked), *shown], capture_output=True)
    assert alone.returncode == 0
    wrapped = subprocess.run([*inheriting(ignored, blocked), ROLLCALL, "run", "--http=none", "--",
                              *shown], capture_output=True, timeout=120)
    assert wrapped.stdout == alone.stdout


def test_run_exits_with_the_jobs_code_while_sigchld_is_ignored():
    ended = subprocess.run([*inheriting([signal.SIGCHLD]), ROLLCALL, "run", "--http=none", "--",
                            "/bin/sh", "-c", "exit 7"], capture_output=True, timeout=120)
    assert ended.returncode == 7


@pytest.mark.long
def test_an_ignored_signal_does_not_end_the_job():
    job = subprocess.Popen([*inheriting([signal.SIGHUP]), ROLLCALL, "run", "--http=none", "--",
                            "/bin/sh", "-c", "echo up; sleep 13; exit 7"],
                           stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert job.stdout.readline() == "up\n"
    job.send_signal(signal.SIGHUP)
    job.communicate(timeout=120)
    assert job.returncode == 7


@pytest.mark.parametrize("another_run_starts_before_the_ranks", [False, True])
def test_the_job_goes_on_when_rollcall_is_killed(tmp_path, another_run_starts_before_the_ranks):
    begun, killed, done = tmp_path / "begun", tmp_path / "killed", tmp_path / "done"
    # A run removes its usual folder if that is empty. Then the ranks could record nothing.
    base = tmp_path / "segments"
    env = {"ROLLCALL_DIR": str(base)}
    job = subprocess.Popen([ROLLCALL, "run", "--sim", "--", "sh", "-c",
                            f"touch {begun}; until [ -e {killed} ]; do sleep 0.05; done; "
                            f"{VICTIMS}/ranks -n 2 -- {VICTIMS}/healthy_mix && touch {done}"],
                           stderr=subprocess.DEVNULL, env={**os.environ, **env})
    wait_for(begun.exists)
    job.kill()
    job.wait()
    if another_run_starts_before_the_ranks:
        rollcall("run", "--", "true", env=env)
        assert folders(job, base) == []
    killed.touch()
    wait_for(done.exists)
    assert folders(job, base) != []
    rollcall("run", "--", "true", env=env)
    assert folders(job, base) == [], "the next run removes the files of the killed run"


def test_analyze_names_and_skips_damaged_segments(tmp_path):
    (tmp_path / "12-34.seg").write_bytes(os.urandom(20000))
    (tmp_path / "56-78.seg").write_bytes(b"")
    result = rollcall("analyze", tmp_path, text=True)
    assert result.returncode == 2
    assert "12-34.seg: not a Rollcall segment" in result.stderr
    assert "56-78.seg: cut short" in result.stderr


def test_the_verdict_comes_once_more_below_the_tracebacks_of_the_launcher(tmp_path):
    job = (f"{VICTIMS / 'ranks'} -n 4 --keep-going -- {VICTIMS / 'one_rank_stops_calling'}; "
           "sleep 1; echo Traceback of a launcher >&2; exit 1")
    result = rollcall("run", "--sim", "--hang-after=2s", "--on-hang=abort", "--http=none",
                      f"--report-dir={tmp_path}", "--", "bash", "-c", f"trap : TERM; {job}")
    lines = result.stderr.decode().splitlines()
    assert result.returncode == 75
    launcher = lines.index("Traceback of a launcher")
    first = [line for line in lines[:launcher] if "has not called AllReduce" in line]
    again = lines[launcher + 1:]
    assert len(first) == 1 and len(again) == 2, lines
    assert again[0].startswith("rollcall: the job ended. Verdict again: ") and "has not called AllReduce" in again[0]
    assert again[1].endswith("/report.txt") and pathlib.Path(again[1].split(": ")[-1]).exists()


@pytest.mark.long
def test_a_job_that_hung_for_a_while_and_ended_well_gets_no_second_verdict(tmp_path):
    # The job ends with 0 after the verdict.
    job = (f"{VICTIMS / 'ranks'} -n 4 --keep-going -- {VICTIMS / 'one_rank_stops_calling'} & "
           "sleep 6; kill -KILL -- $(ps -o pid= --ppid $!) $!; exit 0")
    result = rollcall("run", "--sim", "--hang-after=2s", "--http=none",
                      f"--report-dir={tmp_path}", "--", "bash", "-c", job)
    assert result.returncode == 0, result.stderr
    assert b"has not called AllReduce" in result.stderr and b"Verdict again" not in result.stderr


def test_run_names_the_variables_that_change_it_unless_a_flag_does(tmp_path):
    environment = {"ROLLCALL_HANG_AFTER": "90s", "ROLLCALL_ON_HANG": "abort",
                   "ROLLCALL_HTTP": "none", "ROLLCALL_REPORT_DIR": "./rollcall-reports"}
    said = rollcall("run", "--", "true", env=environment).stderr.decode()
    assert "rollcall: the environment sets ROLLCALL_HANG_AFTER=90s, ROLLCALL_ON_HANG=abort, " \
           "ROLLCALL_HTTP=none\n" in said
    said = rollcall("run", "--hang-after=60s", "--on-hang=observe", "--http=127.0.0.1:0", "--", "true",
                    env=environment).stderr
    assert b"the environment sets" not in said


def test_on_hang_exec_starts_a_command(run, tmp_path):
    note = tmp_path / "note"
    result = run("one_rank_reduces_otherwise",
                 on_hang=f'exec:echo "$ROLLCALL_SUMMARY" > {note}', hang_after="60s")
    assert result.exit_code == 0
    assert "rank 1" in note.read_text()


def test_a_report_on_a_nearly_full_disk_is_smaller_and_says_so(tmp_path):
    disk, copy = tmp_path / "disk", tmp_path / "copy"
    disk.mkdir()
    space = ["unshare", "-m"] if os.geteuid() == 0 else ["unshare", "-Urm"]
    if subprocess.run([*space, "mount", "-t", "tmpfs", "tmpfs", disk]).returncode != 0:
        pytest.skip("this system permits no mounts of one's own")
    job = (f"mount -t tmpfs -o size=110k tmpfs {disk} && {{ {ROLLCALL} run --sim --hang-after=2s "
           f"--on-hang=abort --http=none --report-dir={disk} -- {VICTIMS / 'ranks'} -n 4 "
           f"--keep-going -- {VICTIMS / 'one_rank_stops_calling'}; cp -r {disk} {copy}; }}")
    result = subprocess.run([*space, "sh", "-c", job], capture_output=True, text=True, timeout=120)
    folders = [path for path in copy.iterdir() if not path.name.startswith(".")]
    assert len(folders) == 1, result.stderr
    incident = json.loads((folders[0] / "incident.json").read_text())
    verdict = incident["verdicts"][0]
    assert verdict["cause"] == "missing_rank"
    assert any("the disk was full" in missing for missing in verdict["missing_evidence"])
    assert "the disk was full" in (folders[0] / "report.txt").read_text()
    assert (folders[0] / "report.html").read_text().endswith("</html>\n")
