# SPDX-License-Identifier: Apache-2.0
"""The hangs that one machine can show, with real NCCL on one GPU; then the table of costs.

  run_checks.py OUT [NAME...]     NAME: of the checks of transfers over the network (transfers.py), and then no others

Started by run.sh. Each check is a job of four ranks with one mistake (tests/e2e/victims/*.cc), run under
`rollcall run`; its incident must name cause and culprit. OUT/results.jsonl has what came out (results.py).
"""
import json
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import time

import overhead
import transfers
from machine import SIM, Machine, missing
from results import Results

RANKS = 4
LIMIT_SECONDS = 150
LAG_SECONDS = 90  # of a rank, while the GPUs of others are dumped

# Not among them: ranks that never destroy. Here each is a node of its own, and waits for no other.
#
# Program, environment, the cause (or any of these), who is to blame (None if the cause does not
# show).
CHECKS = [
    ("one_rank_stops_calling", {}, "missing_rank", 3),
    ("one_rank_dies", {}, "rank_died", None),
    ("one_rank_exits_early", {}, "rank_exited", None),
    ("one_rank_never_joins", {}, "init_incomplete", 3),
    ("one_rank_broadcasts", {}, "operation_mismatch", None),
    ("one_rank_sends_another_count", {}, "argument_mismatch", None),
    ("one_rank_reduces_otherwise", {}, "argument_mismatch", None),
    ("one_rank_never_receives", {}, "unmatched_p2p", None),
    ("all_ranks_send_first", {}, "deadlock|unmatched_p2p|stalled_in_flight", None),
    ("one_gpu_is_busy", {}, "blocked_before_start", 2),
    ("two_communicators_in_other_orders", {}, "deadlock", None),
    ("replays_graphs", {"WRONG": "skips_launch"}, "missing_rank", 3),
    ("replays_graphs", {"WRONG": "stays_inside", "ROLLCALL_GRAPH_MARKERS": "1"},
     "blocked_before_start", 3),
    ("replays_graphs", {"WRONG": "captures"}, "missing_rank", 3),
    ("non_blocking", {"WRONG": "0"}, "missing_rank", 3),
    ("non_blocking", {"WRONG": "5"}, "missing_rank", 3),
    ("non_blocking", {"WRONG": "init"}, "init_incomplete", 3),
]
# These must end by themselves, without output.
HEALTHY = [("healthy_mix", {}), ("replays_graphs", {"WRONG": "nothing"}),
           ("replays_graphs", {"WRONG": "nothing", "ROLLCALL_GRAPH_MARKERS": "1"}),
           ("non_blocking", {})]


def run_job(machine, program, environment):
    """(exit code, output, incidents)"""
    with tempfile.TemporaryDirectory(dir=machine.out) as reports:
        command = [*machine.rollcall, "run", "--hang-after=5s", "--on-hang=abort",
                   f"--report-dir={reports}", "--", str(machine.programs / "ranks"), "-n",
                   str(RANKS), "--keep-going", "--",
                   *machine.in_job([machine.programs / program])]
        job = subprocess.Popen(command, env=machine.environ(environment), text=True,
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT)
        try:
            output, _ = job.communicate(timeout=LIMIT_SECONDS)
            code = job.returncode
        except subprocess.TimeoutExpired:
            job.terminate()  # and with it the ranks
            output, _ = job.communicate(timeout=60)
            code, output = -1, f"not over after {LIMIT_SECONDS} s\n{output}"
        incidents = []
        for report in sorted(machine.out.glob(f"{reports.rsplit('/', 1)[1]}/*/incident.json")):
            incidents.append(json.loads(report.read_text()))
            kept = machine.out / f"{program}-{'-'.join(environment.values()) or 'report'}"
            shutil.copytree(report.parent, kept, dirs_exist_ok=True)
    return code, output, incidents


def judge(cause, culprit, incidents):
    """"" if the first incident says so; else what it says."""
    if not incidents:
        return "no incident"
    verdict = incidents[0]["verdicts"][0]
    ranks = [c["rank"] for c in verdict["culprits"]]
    if verdict["cause"] in cause.split("|") and (culprit is None or ranks == [culprit]):
        return ""
    return f"{verdict['cause']} of {ranks}: {verdict['summary']}"


def check_ras(machine):
    """`rollcall diagnose` of a job that runs without Rollcall: it asks NCCL's RAS, and both blame the rank that stops.
    -> (why not, what was printed)"""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    command = [str(machine.programs / "ranks"), "-n", str(RANKS), "--keep-going", "--",
               *machine.in_job([machine.programs / "one_rank_stops_calling"])]
    job = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                           env=machine.environ({"NCCL_RAS_ENABLE": "1", "NCCL_RAS_ADDR": address}))
    try:
        deadline = time.monotonic() + LIMIT_SECONDS
        while True:
            time.sleep(5)  # NCCL begins, and the ranks come to the call that one of them never makes
            look = subprocess.run([*machine.rollcall, "diagnose", "--format=json", "--ras=always", str(job.pid)],
                                  capture_output=True, text=True, timeout=60, check=False)
            verdict = json.loads(look.stdout)["verdicts"][0] if look.returncode == 3 else {}
            culprits = [culprit["rank"] for culprit in verdict.get("culprits", [])]
            told = any("RAS" in line and "launched" in line for line in verdict.get("evidence", []))
            if culprits == [RANKS - 1] and told:
                return "", look.stdout
            if time.monotonic() > deadline or job.poll() is not None:
                return f"exit code {look.returncode}, culprits {culprits}, RAS told: {told}", look.stdout + look.stderr
    finally:
        job.terminate()
        job.wait(timeout=60)


def check_gpu_dump(machine):
    """A rank lags for longer than --hang-after, and the others spin in NCCL's kernel. After dumps of the GPUs of two
    ranks all must go on, and the job ends well. -> (why not, what was printed, what was not looked at: "" or a
    sentence)"""
    with tempfile.TemporaryDirectory(dir=machine.out) as reports:
        command = [*machine.rollcall, "run", "--hang-after=5s", "--gpu-dump", f"--report-dir={reports}", "--",
                   str(machine.programs / "ranks"), "-n", str(RANKS), "--",
                   *machine.in_job([machine.programs / "one_rank_lags"])]
        job = subprocess.Popen(command, env=machine.environ({"LAG_SECONDS": str(LAG_SECONDS)}), text=True,
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        try:
            output, _ = job.communicate(timeout=LIMIT_SECONDS + LAG_SECONDS)
        except subprocess.TimeoutExpired:
            job.terminate()
            output, _ = job.communicate(timeout=60)
            return f"the job did not end within {LIMIT_SECONDS + LAG_SECONDS} s", output, ""
        incidents = [json.loads(path.read_text()) for path in pathlib.Path(reports).glob("*/incident.json")]
    if not incidents:
        return "no incident", output, ""
    dumps = incidents[0]["gpu_dumps"]
    for dump in dumps:
        kernels = [kernel["name"] for kernel in dump["kernels"]]
        print(f"      rank {dump['rank']}: {dump['note'] or kernels}", flush=True)
    notes = [dump["note"] for dump in dumps]
    if not dumps or any(note.startswith("no dump") for note in notes):
        return f"not each GPU was dumped: {notes}", output, ""
    if job.returncode != 0:
        return f"the processes did not go on after their dumps: exit code {job.returncode}", output, ""
    if any("cuda-gdb is not installed" in note for note in notes):
        return "", output, "cuda-gdb is not installed: what the dumps hold was not read"
    names = [kernel["name"] for dump in dumps if not dump["is_culprit"] for kernel in dump["kernels"]]
    if not any("nccl" in name for name in names):
        return f"the kernels of the rank that waits are {names}, and none is NCCL's", output, ""
    return "", output, ""


def first_verdict(incidents):
    return incidents[0]["verdicts"][0] if incidents else None


def check_hangs(machine, results):
    machine.compile("tests/support/ranks.cc")
    for program in sorted({check[0] for check in CHECKS + HEALTHY}):
        machine.compile(f"tests/e2e/victims/{program}.cc")
    for program, environment, cause, culprit in CHECKS:
        _, output, incidents = run_job(machine, program, environment)
        results.add(f"{program} {' '.join(environment.values())}".strip(), judge(cause, culprit, incidents),
                    first_verdict(incidents), output)
    for program, environment in HEALTHY:
        code, output, incidents = run_job(machine, program, environment)
        why = "" if code == 0 and not incidents else f"exit code {code}, {len(incidents)} incidents"
        results.add(f"healthy: {program} {environment}", why, first_verdict(incidents), output)


def check_beside_jobs(machine, results):
    """What the simulated libraries do not have."""
    ras, dumps = "diagnose with RAS", "processes go on after core dumps of their GPUs"
    if SIM:
        results.add(ras, "the simulated NCCL has none", skipped=True)
        results.add(dumps, "the simulated CUDA has no GPU to dump", skipped=True)
        return
    why, output = check_ras(machine)
    results.add(ras, why, output=output)
    machine.compile("tests/e2e/victims/one_rank_lags.cc")
    why, output, unread = check_gpu_dump(machine)
    results.add(dumps, why, output=output)
    if unread:
        results.add("kernels in core dumps of GPUs", unread, skipped=True)


def main():
    machine, only = Machine(sys.argv[1]), sys.argv[2:]
    unknown = set(only) - set(transfers.CHECKS)
    if unknown:
        missing(f"no such check: {' '.join(sorted(unknown))}", *transfers.CHECKS)
    results = Results(machine)
    if not only:
        check_hangs(machine, results)
    transfers.check(machine, only, results)
    if not only:
        check_beside_jobs(machine, results)
    good = results.all_passed()
    if SIM and not only:
        print("no table: the simulated NCCL has no times worth measuring")
    elif not only:
        overhead.measure(machine)
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
