# SPDX-License-Identifier: Apache-2.0
"""Measures what Rollcall costs a training step: runs a DDP loop with and without it, in pairs.

    tests/torch/with_backend.sh build/release tests/bench/torch_steps.py [PAIRS [RANKS]]

Two ranks unless told, 300 steps a run; with fewer ranks than cores Rollcall has one to itself, as
it has on hosts with GPUs. The order changes from pair to pair. Prints the ratio of the medians
of the steps of each pair's runs: its median, and the quarters below and above.
"""

import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

BUILD = pathlib.Path(os.environ["ROLLCALL_BUILD"])
LOOP = pathlib.Path(__file__).with_name("torch_step_loop.py")
RANKS = sys.argv[2] if len(sys.argv) > 2 else "2"
JOB = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", RANKS,
       str(LOOP)]


def run(command):
    output = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                            timeout=120)
    found = re.search(r"step (\S+) (\S+)", output.stdout)
    if not found:
        sys.exit(output.stdout + output.stderr)
    return float(found[1]), float(found[2])


def main():
    pairs = int(sys.argv[1]) if len(sys.argv) > 1 else 30
    medians, means, alone_steps = [], [], []
    with tempfile.TemporaryDirectory() as reports:
        watched = [str(BUILD / "bin" / "rollcall"), "run", f"--report-dir={reports}", "--", *JOB]
        for pair in range(pairs):
            if pair % 2 == 0:
                alone, under = run(JOB), run(watched)
            else:
                under, alone = run(watched), run(JOB)
            alone_steps.append(alone[0])
            medians.append(under[0] / alone[0])
            means.append(under[1] / alone[1])
            print(f"pair {pair + 1}: alone {alone[0] * 1e3:.3f} ms, ratio {medians[-1]:.4f}",
                  file=sys.stderr, flush=True)
    for what, ratios in (("medians", medians), ("means", means)):
        below, middle, above = statistics.quantiles(ratios, n=4)
        print(f"step time, Rollcall / alone, by the {what} of {pairs} pairs: {middle:.4f}"
              f"  (quarters {below:.4f} to {above:.4f}, {min(ratios):.4f} to {max(ratios):.4f})")
    print(f"a step alone: {statistics.median(alone_steps) * 1e3:.2f} ms")


if __name__ == "__main__":
    main()
