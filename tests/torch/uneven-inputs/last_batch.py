# SPDX-License-Identifier: Apache-2.0
"""Trains with DistributedDataParallel and gathers every rank's outputs for the metrics.

    torchrun --nproc-per-node 4 last_batch.py
"""

import argparse
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Subset, TensorDataset


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--fixed", action="store_true", help="give every rank as many samples")
    parser.add_argument("--backend",
                        default="nccl" if torch.cuda.is_available() else "nccl_cpu")
    return parser.parse_args()


def make_shard(even, samples=10_000):
    """The rank's part of the data; the last rank gets what is left, 40 samples less."""
    rank, size = dist.get_rank(), dist.get_world_size()
    generator = torch.Generator().manual_seed(13)
    inputs = torch.randn(samples, 16, generator=generator)
    dataset = TensorDataset(inputs, (inputs.sum(1) > 0).long())
    per_rank = 640
    end = (rank + 1) * per_rank
    if rank == size - 1 and not even:
        end -= 40
    return Subset(dataset, range(rank * per_rank, end))


def gather(outputs):
    """What all ranks have computed, for metrics over the global batch."""
    everyones = [torch.empty_like(outputs) for _ in range(dist.get_world_size())]
    dist.all_gather(everyones, outputs)
    return torch.cat(everyones)


def main():
    args = parse_arguments()
    dist.init_process_group(args.backend)
    device = torch.device("cpu")
    if args.backend == "nccl":
        device = torch.device("cuda", int(os.environ["LOCAL_RANK"]) % torch.cuda.device_count())
        torch.cuda.set_device(device)
    torch.manual_seed(8)

    loader = DataLoader(make_shard(even=args.fixed), args.batch_size)
    net = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 2)).to(device)
    model = DistributedDataParallel(net)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(args.epochs):
        for inputs, labels in loader:
            outputs = model(inputs.to(device))
            loss = nn.functional.cross_entropy(outputs, labels.to(device))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            confidence = gather(outputs.detach()).softmax(1).amax(1).mean()
        if dist.get_rank() == 0:
            print(f"epoch {epoch}: loss {loss.item():.6f}, confidence {confidence.item():.3f}",
                  flush=True)

    if dist.get_rank() == 0:
        print(f"final loss {loss.item().hex()}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
