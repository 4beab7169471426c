# SPDX-License-Identifier: Apache-2.0
"""Fits a model with DistributedDataParallel until one rank fails in the middle of it.

    torchrun --nproc-per-node 4 train.py HOW
"""

import argparse
import os
import signal
import sys
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class DamagedBatch(RuntimeError):
    pass


def load_batch(number, size=16):
    if number == 12 and dist.get_rank() == dist.get_world_size() - 1:
        fail(sys.argv[1])
    return torch.randn(size, 16)


def fail(how):
    time.sleep(0.3)
    if how == "raise":
        raise DamagedBatch("batch 12 has 3 of 16 samples")
    if how == "exit":
        sys.exit(4)
    if how == "leave":
        sys.exit(0)
    os.kill(os.getpid(), {"kill": signal.SIGKILL, "stop": signal.SIGSTOP}[how])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("how", choices=["raise", "exit", "leave", "kill", "stop"])
    parser.add_argument("--backend", default="nccl_cpu")
    args = parser.parse_args()
    dist.init_process_group(args.backend)
    torch.manual_seed(2)
    model = DistributedDataParallel(nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 1)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for number in range(100):
        inputs = load_batch(number)
        loss = (model(inputs) - inputs.sum(1, keepdim=True)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
