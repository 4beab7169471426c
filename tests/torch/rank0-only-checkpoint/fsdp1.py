# SPDX-License-Identifier: Apache-2.0
"""Trains a model wrapped in FullyShardedDataParallel and saves it after every epoch.

    torchrun --nproc-per-node 4 fsdp1.py
"""

import argparse
import functools
import os
import pathlib

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import FullStateDictConfig, FullyShardedDataParallel, StateDictType
from torch.distributed.fsdp.wrap import size_based_auto_wrap_policy


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--checkpoint", type=pathlib.Path, default="checkpoint.pt")
    parser.add_argument("--fixed", action="store_true",
                        help="gather the state on every rank, write it on one")
    parser.add_argument("--backend",
                        default="nccl" if torch.cuda.is_available() else "nccl_cpu")
    return parser.parse_args()


def save(model, args):
    config = FullStateDictConfig(offload_to_cpu=args.backend == "nccl", rank0_only=True)
    with FullyShardedDataParallel.state_dict_type(model, StateDictType.FULL_STATE_DICT, config):
        if args.fixed:
            state = model.state_dict()
            if dist.get_rank() == 0:
                torch.save(state, args.checkpoint)
        elif dist.get_rank() == 0:
            torch.save(model.state_dict(), args.checkpoint)
    dist.barrier()


def main():
    args = parse_arguments()
    dist.init_process_group(args.backend)
    rank = dist.get_rank()
    device = torch.device("cpu")
    if args.backend == "nccl":
        device = torch.device("cuda", int(os.environ["LOCAL_RANK"]) % torch.cuda.device_count())
        torch.cuda.set_device(device)

    torch.manual_seed(9)
    net = nn.Sequential(*(nn.Linear(64, 64) for _ in range(3)), nn.Linear(64, 1)).to(device)
    model = FullyShardedDataParallel(
        net, device_id=device,
        auto_wrap_policy=functools.partial(size_based_auto_wrap_policy, min_num_params=4000))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    torch.manual_seed(100 + rank)
    for epoch in range(args.epochs):
        for _ in range(args.steps):
            inputs = torch.randn(16, 64, device=device)
            loss = (model(inputs) - inputs.sum(1, keepdim=True)).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if rank == 0:
            print(f"epoch {epoch}: loss {loss.item():.6f}", flush=True)
        save(model, args)

    if rank == 0:
        print(f"final loss {loss.item().hex()}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
