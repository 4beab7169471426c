# SPDX-License-Identifier: Apache-2.0
"""Unwanted clients of the daemon's port."""
import subprocess

from conftest import BUILD, ROLLCALL, VICTIMS


def test_a_strangers_message_about_a_job_does_not_end_it(daemon, tmp_path):
    job = subprocess.Popen(
        [ROLLCALL, "run", "--sim", f"--daemon={daemon.address}", "--hang-after=3s",
         "--on-hang=abort", f"--report-dir={tmp_path / 'here'}", "--", VICTIMS / "ranks", "-n", "4",
         "--", VICTIMS / "healthy_mix", "2000"],
        env={"ROLLCALL_JOB": "a-job"}, stderr=subprocess.PIPE, text=True)
    # The stranger says that the job has 128 ranks, and that one of them hangs.
    stranger = subprocess.Popen(
        [BUILD / "tests" / "big_job", f"--daemon={daemon.address}", "--job=a-job", "--ranks=128",
         "--hang-rank=3", "--hang-after=1", "--tick=0.1", "--seconds=60"],
        stdout=subprocess.DEVNULL)
    try:
        said = job.communicate(timeout=120)[1]
    finally:
        stranger.kill()
        stranger.wait()
    assert "rank 3" not in said, "a hang of another job of this name was printed"
    assert job.returncode == 0
