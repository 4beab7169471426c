# SPDX-License-Identifier: Apache-2.0
"""The loop that torch_steps.py measures: DistributedDataParallel, some milliseconds a step."""

import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

WARM_UP, STEPS = 30, 300

torch.set_num_threads(1)
dist.init_process_group("nccl_cpu")
torch.manual_seed(1)
model = DistributedDataParallel(
    nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(),
                  nn.Linear(512, 1)), bucket_cap_mb=0.5)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
inputs = torch.randn(128, 256)
times = []
for _ in range(WARM_UP + STEPS):
    begun = time.perf_counter()
    loss = model(inputs).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    times.append(time.perf_counter() - begun)
if dist.get_rank() == 0:
    steps = sorted(times[WARM_UP:])
    print(f"step {steps[len(steps) // 2]:.9f} {sum(steps) / len(steps):.9f}", flush=True)
dist.destroy_process_group()
