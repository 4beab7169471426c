# SPDX-License-Identifier: Apache-2.0
"""Measures a PyTorch all-reduce on a GPU: bare, recorded, with markers, and with other tools.

Two ranks on one GPU. Runs of all ways in turn, several rounds; the table shows medians of the time
that the host spends in one call, and of a call's whole time, in microseconds.
"""
import collections
import pathlib
import re
import statistics
import subprocess
import sys

ROUNDS = 3
LOOP = pathlib.Path(__file__).with_name("all_reduce_loop.py")

# Name, whether the library is preloaded, environment.
WAYS = [
    ("bare", False, {"TORCH_NCCL_TRACE_BUFFER_SIZE": "0", "TORCH_FR_BUFFER_SIZE": "0"}),
    ("Rollcall, host record", True, {"ROLLCALL_MARKERS": "0"}),
    ("Rollcall, markers", True, {}),
    ("Flight Recorder", False, {"TORCH_NCCL_TRACE_BUFFER_SIZE": "2000",
                                "TORCH_FR_BUFFER_SIZE": "2000"}),
    ("Flight Recorder, timing", False, {"TORCH_NCCL_TRACE_BUFFER_SIZE": "2000",
                                        "TORCH_FR_BUFFER_SIZE": "2000",
                                        "TORCH_NCCL_ENABLE_TIMING": "1"}),
]


def inspector(machine):
    """NCCL's Inspector as one more way, where NCCL came with it."""
    found = sorted(machine.nccl.parent.glob("libnccl-profiler-inspector*.so*"))
    if not found:
        print("no NCCL Inspector beside this NCCL: its row is left out")
        return []
    return [("NCCL Inspector", False, {"NCCL_PROFILER_PLUGIN": str(found[0]),
                                       "NCCL_INSPECTOR_ENABLE": "1"})]


def run(machine, preloaded, environment):
    """{elements: (microseconds of the host, microseconds in all)}"""
    segments = machine.out / "segments"
    segments.mkdir(mode=0o700, exist_ok=True)
    quiet = {"TORCH_NCCL_TRACE_BUFFER_SIZE": "0", "TORCH_FR_BUFFER_SIZE": "0"}
    more = {**quiet, **environment, "NCCL_PROFILER_PLUGIN": environment.get(
        "NCCL_PROFILER_PLUGIN", "none")}
    if preloaded:
        more.update({"LD_PRELOAD": str(machine.library), "ROLLCALL_DIR": str(segments)})
    done = subprocess.run(
        [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2",
         "--no-python", *machine.in_job([sys.executable, LOOP])],
        env=machine.environ(more), capture_output=True, text=True, timeout=200,
        stdin=subprocess.DEVNULL)
    times = {int(elements): (float(host), float(whole)) for elements, host, whole in
             re.findall(r"^elements (\d+) host (\S+) whole (\S+)", done.stdout, re.M)}
    if not times:
        raise RuntimeError(done.stdout[-1000:] + done.stderr[-2000:])
    return times


def measure(machine):
    ways = WAYS + inspector(machine)
    seen = collections.defaultdict(list)
    for _ in range(ROUNDS):
        for name, preloaded, environment in ways:
            try:
                for elements, times in run(machine, preloaded, environment).items():
                    seen[name, elements].append(times)
            except (RuntimeError, subprocess.TimeoutExpired) as error:
                print(f"{name}: {error}", flush=True)
    sizes = sorted({elements for _, elements in seen})
    print("all_reduce of float32, us: host / whole call".ljust(48) +
          "".join(f"{elements:>22}" for elements in sizes))
    for name, _, _ in ways:
        cells = []
        for elements in sizes:
            times = seen[name, elements]
            cells.append("-" if not times else " / ".join(
                f"{statistics.median(part):.2f}" for part in zip(*times)))
        print(name.ljust(48) + "".join(f"{cell:>22}" for cell in cells), flush=True)
