# SPDX-License-Identifier: Apache-2.0
"""Measures what looks of `rollcall diagnose` cost a healthy training job: its steps during looks, and between them.

    build/torch-venv/bin/python tests/bench/looked_at_steps.py build/release [LOOKS [RANKS]]

DistributedDataParallel on gloo, two ranks and 50 looks unless told, three samples within two seconds each. A look and a
pause of the same length are a pair; which comes first changes from pair to pair. Prints the steps of both sides, and
the ratio of the medians of each pair: its median, and the quarters below and above. Exits with 1 if a look says that
the job hangs.
"""

import bisect
import os
import pathlib
import socket
import statistics
import subprocess
import sys
import tempfile
import time

WARM_UP_STEPS = 50
HANG = 3  # exit code


def train(steps_file):
    """The body of a rank: rank 0 writes when each of its steps has ended, and how long it took."""
    import torch
    import torch.distributed as dist
    from torch import nn
    from torch.nn.parallel import DistributedDataParallel

    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    torch.manual_seed(1)
    layers = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 1))
    model = DistributedDataParallel(layers, bucket_cap_mb=0.5)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    inputs = torch.randn(128, 256)
    with open(steps_file, "w", buffering=1) as steps:
        begun = time.monotonic()
        while True:
            loss = model(inputs).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            ended = time.monotonic()
            if dist.get_rank() == 0:
                steps.write(f"{ended} {ended - begun}\n")
            begun = ended


def start(ranks, folder):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    place = {"WORLD_SIZE": str(ranks), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "OMP_NUM_THREADS": "1"}
    return [subprocess.Popen([sys.executable, __file__, "--train", str(folder / f"steps-{rank}")],
                             stderr=subprocess.DEVNULL,
                             env={**os.environ, **place, "RANK": str(rank), "LOCAL_RANK": str(rank)})
            for rank in range(ranks)]


def wait_until_it_trains(steps_file):
    while not steps_file.exists() or steps_file.read_text().count("\n") < WARM_UP_STEPS:
        time.sleep(0.2)


def look(rollcall, pid):
    """Returns when it began and ended, and its exit code."""
    begun = time.monotonic()
    done = subprocess.run([str(rollcall), "diagnose", "--samples-apart=2s", str(pid)], capture_output=True, text=True,
                          timeout=120, check=False)
    if done.returncode != 0:
        print(done.stdout + done.stderr, file=sys.stderr)
    return begun, time.monotonic(), done.returncode


def pause(seconds):
    begun = time.monotonic()
    time.sleep(seconds)
    return begun, time.monotonic()


def measure(rollcall, job, looks):
    """The pairs of a look and a pause, each with its begin and end, and the exit codes of the looks."""
    pairs, codes, length = [], [], 3.0
    for number in range(looks):
        first = pause(length) if number % 2 else None
        begun, ended, code = look(rollcall, job[0].pid)
        length = ended - begun
        pairs.append(((begun, ended), first or pause(length)))
        codes.append(code)
    return pairs, codes


def steps_within(steps, span):
    ends = [end for end, _ in steps]
    return [took for _, took in steps[bisect.bisect(ends, span[0]):bisect.bisect(ends, span[1])]]


def describe(what, steps):
    ordered = sorted(steps)
    print(f"{what}: median {statistics.median(ordered) * 1e3:.2f} ms, mean {statistics.mean(ordered) * 1e3:.2f} ms, "
          f"99 of 100 within {ordered[len(ordered) * 99 // 100] * 1e3:.2f} ms ({len(ordered)} steps)")


def main():
    build = pathlib.Path(sys.argv[1])
    looks = int(sys.argv[2]) if len(sys.argv) > 2 else 50
    ranks = int(sys.argv[3]) if len(sys.argv) > 3 else 2
    with tempfile.TemporaryDirectory() as folder:
        job = start(ranks, pathlib.Path(folder))
        try:
            wait_until_it_trains(pathlib.Path(folder, "steps-0"))
            pairs, codes = measure(build / "bin" / "rollcall", job, looks)
        finally:
            for rank in job:
                rank.kill()
                rank.wait()
        lines = pathlib.Path(folder, "steps-0").read_text().splitlines()[:-1]
    steps = [tuple(map(float, line.split())) for line in lines]
    sides = [(steps_within(steps, one), steps_within(steps, other)) for one, other in pairs]
    describe("steps during looks ", [step for side, _ in sides for step in side])
    describe("steps between looks", [step for _, side in sides for step in side])
    ratios = [statistics.median(one) / statistics.median(other) for one, other in sides if one and other]
    below, middle, above = statistics.quantiles(ratios, n=4)
    print(f"during / between, by the medians of {len(ratios)} pairs: {middle:.4f} "
          f"(quarters {below:.4f} to {above:.4f})")
    print(f"{codes.count(0)} of {looks} looks found that nothing stands still, {codes.count(HANG)} called it a hang")
    return 1 if HANG in codes else 0


if __name__ == "__main__":
    if sys.argv[1] == "--train":
        train(sys.argv[2])
    sys.exit(main())
