# SPDX-License-Identifier: Apache-2.0
"""Trains an image classifier with DistributedDataParallel and BatchNorm, and validates it.

    torchrun --nproc-per-node 4 train.py
"""

import argparse
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--fixed", action="store_true", help="validate on the bare module")
    parser.add_argument("--backend",
                        default="nccl" if torch.cuda.is_available() else "nccl_cpu")
    return parser.parse_args()


def make_dataset(samples, seed):
    generator = torch.Generator().manual_seed(seed)
    images = torch.randn(samples, 3, 8, 8, generator=generator)
    return TensorDataset(images, (images.mean((1, 2, 3)) > 0).long())


def make_network():
    return nn.Sequential(
        nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(),
        nn.Conv2d(8, 8, 3), nn.BatchNorm2d(8), nn.ReLU(),
        nn.Flatten(), nn.Linear(8 * 4 * 4, 2),
    )


def train_epoch(model, loader, optimizer, device):
    model.train()
    for images, labels in loader:
        loss = nn.functional.cross_entropy(model(images.to(device)), labels.to(device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


def validate(model, loader, device):
    """With the statistics of the batch, which tell more than running ones this early."""
    right = 0
    for images, labels in loader:
        right += (model(images.to(device)).argmax(1) == labels.to(device)).sum().item()
    return right / len(loader.dataset)


def main():
    args = parse_arguments()
    dist.init_process_group(args.backend)
    rank = dist.get_rank()
    device = torch.device("cpu")
    if args.backend == "nccl":
        device = torch.device("cuda", int(os.environ["LOCAL_RANK"]) % torch.cuda.device_count())
        torch.cuda.set_device(device)
    torch.manual_seed(17)

    training = make_dataset(1024, seed=1)
    sampler = DistributedSampler(training)
    loader = DataLoader(training, args.batch_size, sampler=sampler)
    validation = DataLoader(make_dataset(128, seed=2), args.batch_size)
    model = DistributedDataParallel(make_network().to(device))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)

    for epoch in range(args.epochs):
        sampler.set_epoch(epoch)
        loss = train_epoch(model, loader, optimizer, device)
        if rank == 0:
            print(f"epoch {epoch}: loss {loss:.6f}", flush=True)
            if epoch > 0:  # the first epoch's model is not worth it
                right = validate(model.module if args.fixed else model, validation, device)
                print(f"epoch {epoch}: {right:.1%} right", flush=True)

    if rank == 0:
        print(f"final loss {loss.hex()}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
