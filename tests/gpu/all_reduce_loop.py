# SPDX-License-Identifier: Apache-2.0
"""The loop that overhead.py measures: all-reduces of a small and a large tensor."""

import statistics
import time

import torch
import torch.distributed as dist

WARM_UP, ROUNDS = 10, 8
# Elements, and calls a round: between ranks of one GPU the large tensor takes some 20 ms a call.
SIZES = {1024: 50, 4 << 20: 10}

torch.cuda.set_device(0)
dist.init_process_group("nccl")
for elements, calls in SIZES.items():
    tensor = torch.zeros(elements, device="cuda")
    host, whole = [], []
    for turn in range(ROUNDS + 1):
        torch.cuda.synchronize()
        dist.barrier()
        torch.cuda.synchronize()
        begun = time.perf_counter()
        for _ in range(calls if turn else WARM_UP):
            dist.all_reduce(tensor)
        enqueued = time.perf_counter()
        torch.cuda.synchronize()
        if turn:
            host.append((enqueued - begun) / calls * 1e6)
            whole.append((time.perf_counter() - begun) / calls * 1e6)
    if dist.get_rank() == 0:
        print(f"elements {elements} host {statistics.median(host):.3f} "
              f"whole {statistics.median(whole):.3f}", flush=True)
dist.destroy_process_group()
