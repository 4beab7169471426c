# SPDX-License-Identifier: Apache-2.0
"""Fits a small regression model on several GPUs with DistributedDataParallel.

    torchrun --nproc-per-node 4 train.py
"""

import argparse
import math
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, Subset, TensorDataset

SAMPLES = 10_001
FEATURES = 32


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch-size", type=int, default=50)
    parser.add_argument("--learning-rate", type=float, default=0.02)
    parser.add_argument("--fixed", action="store_true",
                        help="deal the samples out with DistributedSampler")
    parser.add_argument("--backend",
                        default="nccl" if torch.cuda.is_available() else "nccl_cpu")
    return parser.parse_args()


def make_dataset():
    generator = torch.Generator().manual_seed(7)
    inputs = torch.randn(SAMPLES, FEATURES, generator=generator)
    weights = torch.randn(FEATURES, 1, generator=generator) / math.sqrt(FEATURES)
    noise = torch.randn(SAMPLES, 1, generator=generator)
    return TensorDataset(inputs, torch.sin(inputs @ weights) + 0.1 * noise)


def make_loader(dataset, args):
    rank, world_size = dist.get_rank(), dist.get_world_size()
    if args.fixed:
        sampler = DistributedSampler(dataset, shuffle=True)
        return DataLoader(dataset, args.batch_size, sampler=sampler)
    # Every rank trains on its own slice of the data, the last one on what remains.
    per_rank = math.ceil(len(dataset) / world_size)
    end = min((rank + 1) * per_rank, len(dataset))
    shard = Subset(dataset, range(rank * per_rank, end))
    return DataLoader(shard, args.batch_size, shuffle=True)


def train_epoch(model, loader, optimizer, device):
    total = 0.0
    for inputs, targets in loader:
        loss = nn.functional.mse_loss(model(inputs.to(device)), targets.to(device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    return total / len(loader)


@torch.no_grad()
def evaluate(model, dataset, device):
    inputs, targets = dataset.tensors
    return nn.functional.mse_loss(model(inputs.to(device)), targets.to(device)).item()


def main():
    args = parse_arguments()
    dist.init_process_group(args.backend)
    rank = dist.get_rank()
    device = torch.device("cpu")
    if torch.cuda.is_available():
        device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
        torch.cuda.set_device(device)
    torch.manual_seed(1234)

    dataset = make_dataset()
    loader = make_loader(dataset, args)
    net = nn.Sequential(nn.Linear(FEATURES, 64), nn.Tanh(), nn.Linear(64, 1)).to(device)
    model = DistributedDataParallel(net)
    optimizer = torch.optim.SGD(model.parameters(), lr=args.learning_rate, momentum=0.9)

    for epoch in range(args.epochs):
        if args.fixed:
            loader.sampler.set_epoch(epoch)
        loss = train_epoch(model, loader, optimizer, device)
        if rank == 0:
            print(f"epoch {epoch}: loss {loss:.6f}", flush=True)

    if rank == 0:
        print(f"final loss {evaluate(net, dataset, device).hex()}", flush=True)
    print(f"rank {rank}: done", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
