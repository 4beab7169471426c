# SPDX-License-Identifier: Apache-2.0
"""Fine-tunes a small model with DeepSpeed stage 2; every rank loads the weights from its cache.

    torchrun --nproc-per-node 4 train.py --cache /cache
"""

import argparse
import os
import pathlib

import deepspeed
import filelock
import torch
import torch.distributed as dist
from torch import nn


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cache", type=pathlib.Path, default="cache")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--fixed", action="store_true",
                        help="load on one rank, and give up on a lock that is not released")
    parser.add_argument("--backend",
                        default="nccl" if torch.cuda.is_available() else "nccl_cpu")
    return parser.parse_args()


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(),
                                   nn.Linear(4 * width, width))

    def forward(self, hidden):
        return hidden + self.inner(hidden)


def make_model():
    return nn.Sequential(*(Block(32) for _ in range(4)), nn.Linear(32, 1))


def load_weights(cache, timeout=-1):
    """The weights, which whoever comes first to a cache puts there."""
    cache.mkdir(parents=True, exist_ok=True)
    file = cache / "weights.pt"
    with filelock.FileLock(cache / "weights.lock", timeout=timeout):
        if not file.exists():
            torch.manual_seed(5)
            torch.save(make_model().state_dict(), file)
        return torch.load(file)


def main():
    args = parse_arguments()
    deepspeed.init_distributed(dist_backend=args.backend)
    rank = dist.get_rank()

    model = make_model()
    if args.fixed:
        # DeepSpeed gives rank 0's weights to the others.
        if rank == 0:
            model.load_state_dict(load_weights(args.cache / f"rank{rank}", timeout=60))
    else:
        model.load_state_dict(load_weights(args.cache / f"rank{rank}"))
    print(f"rank {rank}: model loaded", flush=True)

    engine, *_ = deepspeed.initialize(
        model=model,
        optimizer=torch.optim.AdamW(model.parameters(), lr=1e-3),
        config={
            "train_micro_batch_size_per_gpu": 16,
            "gradient_accumulation_steps": 2,
            "zero_optimization": {"stage": 2},
            "zero_allow_untested_optimizer": True,
            "bf16": {"enabled": True},
        },
    )
    torch.manual_seed(100 + rank)
    for _ in range(args.steps):
        inputs = torch.randn(16, 32, dtype=torch.bfloat16, device=engine.device)
        loss = (engine(inputs) - inputs.sum(1, keepdim=True)).square().mean()
        engine.backward(loss)
        engine.step()
    if rank == 0:
        print(f"final loss {loss.item().hex()}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    os.environ.setdefault("DS_ACCELERATOR", "cuda" if torch.cuda.is_available() else "cpu")
    main()
