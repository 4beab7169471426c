# SPDX-License-Identifier: Apache-2.0
"""Trains a classifier with Lightning Fabric on a data set that one rank makes.

    torchrun --nproc-per-node 4 train.py
"""

import argparse
import os
import pathlib
import time

import torch
from lightning.fabric import Fabric
from lightning.fabric.strategies import DDPStrategy
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=pathlib.Path, default="data.pt")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--fixed", action="store_true")
    parser.add_argument("--backend",
                        default="nccl" if torch.cuda.is_available() else "nccl_cpu")
    return parser.parse_args()


def make_dataset(path):
    generator = torch.Generator().manual_seed(11)
    inputs = torch.randn(4096, 32, generator=generator)
    labels = (inputs.square().sum(1) > 32).long()
    unfinished = path.with_suffix(".part")
    torch.save((inputs, labels), unfinished)
    unfinished.rename(path)


def load_dataset(fabric, args):
    if args.fixed:
        if fabric.is_global_zero:
            make_dataset(args.data)
        fabric.barrier()
    elif fabric.is_global_zero:
        make_dataset(args.data)
        fabric.barrier()  # the others should not read before it is there
    while not args.data.exists():
        time.sleep(0.05)
    return TensorDataset(*torch.load(args.data))


def main():
    args = parse_arguments()
    fabric = Fabric(accelerator="cuda" if args.backend == "nccl" else "cpu",
                    devices=int(os.environ["LOCAL_WORLD_SIZE"]),
                    strategy=DDPStrategy(process_group_backend=args.backend))
    fabric.launch()
    fabric.seed_everything(3)

    loader = fabric.setup_dataloaders(
        DataLoader(load_dataset(fabric, args), batch_size=64, shuffle=True))
    net = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 2))
    model, optimizer = fabric.setup(net, torch.optim.SGD(net.parameters(), lr=0.1))

    for epoch in range(args.epochs):
        for inputs, labels in loader:
            loss = nn.functional.cross_entropy(model(inputs), labels)
            optimizer.zero_grad()
            fabric.backward(loss)
            optimizer.step()
        fabric.print(f"epoch {epoch}: loss {loss.item():.6f}", flush=True)

    fabric.print(f"final loss {loss.item().hex()}", flush=True)
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
