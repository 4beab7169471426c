# SPDX-License-Identifier: Apache-2.0
"""Trains with FSDP2 by Lightning Fabric and saves a full checkpoint.

    torchrun --nproc-per-node 4 fabric.py
"""

import argparse
import os
import pathlib

import torch
from lightning.fabric import Fabric
from lightning.fabric.strategies import ModelParallelStrategy
from torch import nn
from torch.distributed.fsdp import fully_shard


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--checkpoint", type=pathlib.Path, default="checkpoint.pt")
    parser.add_argument("--fixed", action="store_true", help="call fabric.save() on every rank")
    parser.add_argument("--backend",
                        default="nccl" if torch.cuda.is_available() else "nccl_cpu")
    return parser.parse_args()


def shard(model, device_mesh):
    for layer in model:
        fully_shard(layer, mesh=device_mesh["data_parallel"])
    return fully_shard(model, mesh=device_mesh["data_parallel"])


def main():
    args = parse_arguments()
    fabric = Fabric(
        accelerator="cuda" if args.backend == "nccl" else "cpu",
        devices=int(os.environ["LOCAL_WORLD_SIZE"]),
        strategy=ModelParallelStrategy(
            shard, data_parallel_size=int(os.environ["WORLD_SIZE"]), tensor_parallel_size=1,
            save_distributed_checkpoint=False, process_group_backend=args.backend),
    )
    fabric.launch()
    fabric.seed_everything(9)

    net = nn.Sequential(*(nn.Linear(64, 64) for _ in range(3)), nn.Linear(64, 1))
    model = fabric.setup_module(net)
    optimizer = fabric.setup_optimizers(torch.optim.AdamW(model.parameters(), lr=1e-3))
    torch.manual_seed(100 + fabric.global_rank)
    for epoch in range(args.epochs):
        for _ in range(args.steps):
            inputs = torch.randn(16, 64, device=fabric.device)
            loss = (model(inputs) - inputs.sum(1, keepdim=True)).square().mean()
            optimizer.zero_grad()
            fabric.backward(loss)
            optimizer.step()
        fabric.print(f"epoch {epoch}: loss {loss.item():.6f}", flush=True)
        if args.fixed or fabric.is_global_zero:
            fabric.save(args.checkpoint, {"model": model, "epoch": epoch})
        fabric.barrier()

    fabric.print(f"final loss {loss.item().hex()}", flush=True)
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
