# SPDX-License-Identifier: Apache-2.0
"""Real oneCCL, by its C++ interface, on the CPU: each hang gets its verdict, each healthy program none, and the result
that it has without Rollcall.

    tests/run oneccl
"""
import json
import os
import pathlib
import re
import subprocess

import pytest

HERE = pathlib.Path(__file__).parent
ROOT = HERE.parents[1]
BUILD = pathlib.Path(os.environ["ROLLCALL_BUILD"]).resolve()
ONECCL = ROOT / "build" / "oneccl-venv"
# Over libfabric instead of MPI. Threads that wait give up their processor: the ranks have few.
SETTINGS = {"LD_LIBRARY_PATH": str(ONECCL / "lib"), "CCL_PROCESS_LAUNCHER": "none", "CCL_LOCAL_SIZE": "3",
            "CCL_ATL_TRANSPORT": "ofi", "FI_PROVIDER": "tcp", "CCL_WORKER_COUNT": "1", "CCL_YIELD": "sleep",
            "CCL_LOG_LEVEL": "error"}


@pytest.fixture(scope="module")
def job(tmp_path_factory):
    program = tmp_path_factory.mktemp("job") / "job"
    subprocess.run(["g++", "-g", "-std=c++17", f"-I{ONECCL}/include", HERE / "job.cc", "-o", program,
                    f"-L{ONECCL}/lib", "-lccl", f"-Wl,-rpath,{ONECCL}/lib"], check=True)
    return program


def go(command, folder):
    """(exit code, output) of a job in a folder of its own."""
    folder.mkdir()
    limit = ["timeout", "--kill-after=10", "120"]  # ends all processes of the job, too
    run = subprocess.run([*limit, *command, str(folder)], capture_output=True, text=True, check=False,
                         stdin=subprocess.DEVNULL, env={**os.environ, **SETTINGS})
    return run.returncode, run.stdout + run.stderr


def watched(job, program, tmp_path, hang_after, on_hang="observe"):
    """(exit code, output, verdicts)"""
    reports = tmp_path / "reports"
    code, output = go([str(BUILD / "bin" / "rollcall"), "run", f"--hang-after={hang_after}", f"--on-hang={on_hang}",
                       f"--report-dir={reports}", "--", str(job), program], tmp_path / "watched")
    found = [json.loads(file.read_text()) for file in sorted(reports.glob("*/incident.json"))]
    return code, output, [incident["verdicts"][0] for incident in found]


def own_lines(output):
    return sorted(line for line in output.splitlines() if line.startswith(("rank ", "caught ")))


@pytest.mark.parametrize("program", ["healthy", "ring", "slow", "throws"])
def test_a_healthy_job_has_its_own_result_and_no_verdict(program, job, tmp_path):
    plain = go([str(job), program], tmp_path / "plain")
    code, output, verdicts = watched(job, program, tmp_path, "30s")
    assert (code, own_lines(output)) == (plain[0], own_lines(plain[1])) and code == 0, output
    assert len(re.findall(r"^rank \d done: 3$", output, re.M)) == 3
    assert verdicts == [] and not re.search("^rollcall:", output, re.M), output


@pytest.mark.parametrize(("program", "cause", "culprits", "call"), [
    ("absent", "missing_rank", [2], "AllReduce"),
    ("tests", "missing_rank", [2], "AllReduce"),
    ("spins", "missing_rank", [2], "AllReduce"),
    ("naps", "missing_rank", [2], "AllReduce"),
    ("another", "operation_mismatch", [2], "AllReduce"),
    ("unsent", "unmatched_p2p", [0, 1], "Recv"),
    ("late", "init_incomplete", [2], "CommInitRank"),
])
def test_a_hang_gets_its_verdict(program, cause, culprits, call, job, tmp_path):
    code, output, verdicts = watched(job, program, tmp_path, "12s", "abort")
    assert code == 75, output
    verdict = verdicts[0]
    assert (verdict["cause"], sorted(culprit["rank"] for culprit in verdict["culprits"])) == (cause, culprits), output
    assert verdict["call"]["operation"] == call
    assert verdict["communicator"]["kind"] == "oneccl"
    # A loop of tests may do something else in between, and no variable numbers the rank that has not joined.
    is_starved = "wait for a CPU" in str(verdict["missing_evidence"])
    is_known = len(culprits) == 1 and program not in ("tests", "spins", "naps", "late") and not is_starved
    assert verdict["certainty"] == "certain" or not is_known, verdict["missing_evidence"]
