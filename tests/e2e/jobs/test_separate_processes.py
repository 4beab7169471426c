# SPDX-License-Identifier: Apache-2.0
"""The same job with agent and daemon inside `rollcall run`, and as processes of
their own over TCP."""
import os
import re
import signal
import subprocess

from conftest import BUILD, Service, wait_for


def test_a_remote_daemon_gives_the_verdict_of_the_embedded_one(run, daemon, tmp_path):
    result = run("one_rank_stops_calling", flags=[f"--daemon={daemon.address}"])
    assert result.exit_code == 75, result.err
    assert result.verdict["cause"] == "missing_rank"
    assert [c["rank"] for c in result.verdict["culprits"]] == [3]
    assert len(list((tmp_path / "daemon-reports").iterdir())) == 1


def check_stacks_of_the_job(daemon):
    def stacks(*arguments):
        return subprocess.run([BUILD / "bin" / "rollcall", "stacks", *arguments],
                              env={**os.environ, "ROLLCALL_DAEMON": daemon.address},
                              capture_output=True, text=True, timeout=120)

    merged = stacks("a-job")
    assert merged.returncode == 0, merged.stderr
    assert merged.stdout.startswith("[0-3] 4 ranks")
    assert re.search(r"\[3\] 1 rank, 1 thread\n +Validate", merged.stdout), merged.stdout
    assert re.search(r"\[0-2\] 3 ranks, 3 threads\n +victim::Rank", merged.stdout), merged.stdout
    one = stacks("--rank=3", "--each", "a-job")
    assert "rank 3" in one.stdout and "rank 2" not in one.stdout
    assert "Validate()" in one.stdout
    folded = stacks("--format=folded", "--rank=0-1", "a-job").stdout
    assert re.search(r"main;.*;?cudaStreamSynchronize.* 2$", folded, re.M), folded
    status = subprocess.run([BUILD / "bin" / "rollcall", "status", "no-such-job"],
                            env={**os.environ, "ROLLCALL_DAEMON": daemon.address},
                            capture_output=True, text=True, timeout=120)
    assert (status.returncode, status.stdout) == (1, "")
    assert "no job \"no-such-job\"; jobs here: a-job" in status.stderr
    unknown = stacks("no-such-job")
    assert unknown.returncode == 1
    assert "no job \"no-such-job\"; jobs here: a-job" in unknown.stderr
    nobody = stacks("--host=nowhere", "a-job")
    assert nobody.returncode == 1
    assert "no living process of these ranks and hosts" in nobody.stderr
    assert stacks("--rank=x", "a-job").returncode == 2


def test_agent_and_daemon_as_processes_of_their_own_name_the_rank(daemon, tmp_path):
    segments = tmp_path / "segments"
    segments.mkdir(mode=0o700)
    agent = Service([BUILD / "bin" / "rollcall-agent", f"--daemon={daemon.address}",
                     f"--dir={segments}", "--scope=directory"])
    job = subprocess.Popen(
        [BUILD / "tests" / "ranks", "-n", "4", "--", BUILD / "tests" / "one_rank_stops_calling"],
        env={**os.environ, "LD_PRELOAD": str(BUILD / "lib" / "librollcall.so"),
             "LD_LIBRARY_PATH": str(BUILD / "sim"), "ROLLCALL_DIR": str(segments),
             "ROLLCALL_JOB": "a-job"})
    try:
        def find_hang():
            status = subprocess.run([BUILD / "bin" / "rollcall", "status", "--all",
                                     f"--daemon={daemon.address}"],
                                    capture_output=True, text=True).stdout
            return status if "a-job: hung" in status else None

        assert "rank 3" in wait_for(find_hang)
        assert job.poll() is None
        check_stacks_of_the_job(daemon)
    finally:
        job.terminate()
        job.wait(timeout=120)
        agent.kill()


def test_a_job_outlives_agent_and_daemon_that_are_killed(run, daemon):
    daemon.kill(signal.SIGKILL)
    result = run("healthy_mix", ranks=4, flags=[f"--daemon={daemon.address}"])
    assert result.exit_code == 0


def test_a_daemon_that_dies_last_is_away(daemon):
    last = f"sleep 1; kill -9 {daemon.process.pid}"
    result = subprocess.run(
        [BUILD / "bin" / "rollcall", "run", f"--daemon={daemon.address}", "--", "sh", "-c", last],
        capture_output=True, text=True, timeout=120)
    assert result.returncode == 0, result.stderr
    assert result.stderr.count("cannot reach the daemon at") == 1, result.stderr


def test_analyze_reads_the_segments_of_an_ended_job(daemon, tmp_path):
    segments = tmp_path / "segments"
    segments.mkdir(mode=0o700)
    job = subprocess.Popen(
        [BUILD / "tests" / "ranks", "-n", "4", "--", BUILD / "tests" / "one_rank_stops_calling"],
        env={**os.environ, "LD_PRELOAD": str(BUILD / "lib" / "librollcall.so"),
             "LD_LIBRARY_PATH": str(BUILD / "sim"), "ROLLCALL_DIR": str(segments)})

    def analyze():
        return subprocess.run([BUILD / "bin" / "rollcall", "analyze", segments],
                              capture_output=True, text=True)

    try:
        wait_for(lambda: "AllReduce #10" in analyze().stdout)  # the job is in its hang
    finally:
        job.terminate()
        job.wait(timeout=120)
    analyzed = analyze()
    assert analyzed.returncode == 3, analyzed.stderr
    assert "rank 3" in analyzed.stdout
    assert "AllReduce" in analyzed.stdout
