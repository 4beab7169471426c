#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares Rollcall with other tools that take stacks, on the same processes, in one run.

    tests/bench/stacks/measure.py [--build build/release] [--rounds 10]

Targets: a C++ process of 64 threads, a Python process of 32, and a rank of a PyTorch DDP job where
tests/torch has been set up. For each tool, prints the median over the rounds of wall time, CPU time
of the tool, the longest gap of a thread of the target that looks at the clock every 100 us, and
how many of the expected frames the tool showed. Tools that are not installed are said and left
out: gdb and elfutils from the distribution, py-spy and pystack from PyPI.
"""
import argparse
import mmap
import os
import pathlib
import re
import resource
import shutil
import statistics
import struct
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]


class Ticker:
    def __init__(self, directory):
        self.path = directory / "ticker"
        self.path.write_bytes(bytes(4096))
        with open(self.path, "r+b") as file:
            self.memory = mmap.mmap(file.fileno(), 4096)

    def reset(self):
        self.memory[:8] = bytes(8)

    def longest_ms(self):
        return struct.unpack("Q", self.memory[:8])[0] / 1e6


class Target:
    def __init__(self, name, command, frames, frame, env, has_python):
        self.name, self.frames, self.frame, self.has_python = name, frames, frame, has_python
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=env,
                                        stdin=subprocess.DEVNULL, start_new_session=True,
                                        stderr=subprocess.DEVNULL)
        self.pid = self.process.pid
        for line in self.process.stdout:
            if line.startswith("ready"):
                words = line.split()
                self.pid = int(words[1]) if len(words) > 1 else self.pid
                return
        raise SystemExit(f"{name} ended before it was ready")

    def end(self):
        self.process.terminate()  # torchrun then ends its ranks, which have sessions of their own
        try:
            self.process.wait(timeout=60)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, 9)
            self.process.wait()


def tools(build, target):
    """name -> command; None where it is not installed."""
    venv = build / "bench-venv" / "bin"
    pid = str(target.pid)
    found = {
        "rollcall, outside": [str(build / "bin" / "rollcall"), "stacks", "--way=outside", pid],
        "rollcall, inside": [str(build / "bin" / "rollcall"), "stacks", "--way=inside", pid],
        "gdb, all bt": [shutil.which("gdb"), "-p", pid, "-batch", "-nx", "-ex",
                        "thread apply all bt"],
        "eu-stack": [shutil.which("eu-stack"), "-p", pid],
    }
    if target.has_python:
        found["py-spy dump"] = [shutil.which("py-spy", path=venv), "dump", "--pid", pid]
        found["py-spy dump --native"] = found["py-spy dump"] + ["--native"]
        found["pystack"] = [shutil.which("pystack", path=venv), "remote", pid]
        found["pystack --native-all"] = found["pystack"] + ["--native-all"]
    return {name: command if command[0] else None for name, command in found.items()}


def run_once(command, target, ticker):
    ticker.reset()
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    begun = time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    wall = time.monotonic() - begun
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return wall * 1e3, cpu * 1e3, ticker.longest_ms(), len(re.findall(target.frame, done.stdout))


def measure(build, target, ticker, rounds):
    print(f"\n{target.name}: median of {rounds}\n")
    print(f"{'tool':24}{'wall ms':>9}{'CPU ms':>9}{'gap ms':>9}   frames found")
    idle = []
    for _ in range(rounds):
        ticker.reset()
        time.sleep(0.2)
        idle.append(ticker.longest_ms())
    print(f"{'(nobody)':24}{'':9}{'':9}{statistics.median(idle):9.2f}")
    for name, command in tools(build, target).items():
        if command is None:
            print(f"{name:24} not installed")
            continue
        results = [run_once(command, target, ticker) for _ in range(rounds)]
        wall, cpu, gap, frames = (statistics.median(column) for column in zip(*results))
        print(f"{name:24}{wall:9.1f}{cpu:9.1f}{gap:9.2f}   {frames:.0f} of {target.frames}")
    for way in ("outside", "inside"):
        probe = subprocess.run([build / "bench" / "stacks_probe", str(target.pid), way, "30"],
                               capture_output=True, text=True, timeout=120)
        print(f"\nwithin one process, as the agent does, {way}:")
        print("  " + (probe.stdout or probe.stderr).strip().replace("\n", "\n  "))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "release")
    parser.add_argument("--rounds", type=int, default=10)
    options = parser.parse_args()
    build = options.build.resolve()
    with tempfile.TemporaryDirectory() as scratch:
        ticker = Ticker(pathlib.Path(scratch))
        env = {**os.environ, "ROLLCALL_DIR": scratch, "TICKER_FILE": str(ticker.path),
               "LD_PRELOAD": f"{build}/lib/librollcall.so:{build}/bench/libticker.so",
               "LD_LIBRARY_PATH": f"{build}/sim"}
        targets = [
            ("C++, 64 threads", [str(build / "bench" / "stacks_cpp_target")], 64,
             r"StandInLeaf", False),
            (f"Python {sys.version_info[0]}.{sys.version_info[1]}, 32 threads",
             [sys.executable, str(HERE / "python_target.py")], 32, r"\bstand_in_leaf\b", True),
        ]
        torchrun = ROOT / "build" / "torch-venv" / "bin" / "torchrun"
        if torchrun.exists():
            targets.append(("PyTorch DDP, one rank",
                            [str(torchrun), "--nproc-per-node=2", str(HERE / "torch_target.py")],
                            1, r"\bstand_in_leaf\b", True))
        else:
            print("PyTorch: left out, deploy/setup_parts.sh torch sets it up")
        for name, command, frames, frame, has_python in targets:
            of_a_job = {"TICKER_RANK": "0"} if "torchrun" in command[0] else {}
            target = Target(name, command, frames, frame, {**env, **of_a_job}, has_python)
            try:
                measure(build, target, ticker, options.rounds)
            finally:
                target.end()


if __name__ == "__main__":
    main()
