# SPDX-License-Identifier: Apache-2.0
"""Trains with DistributedDataParallel, validates after every epoch, and says which it does.

    torchrun --nproc-per-node 4 train.py
"""

import argparse
import ctypes
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

rollcall = ctypes.CDLL(None)  # has the functions of preloaded libraries
if hasattr(rollcall, "rollcall_set_step"):
    def report(step, phase):
        rollcall.rollcall_set_step(ctypes.c_uint64(step))
        rollcall.rollcall_set_phase(phase.encode())
else:
    def report(step, phase):
        pass


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--fixed", action="store_true",
                        help="ranks without validation samples take part in the sum")
    parser.add_argument("--backend",
                        default="nccl" if torch.cuda.is_available() else "nccl_cpu")
    return parser.parse_args()


def make_dataset(samples, seed):
    generator = torch.Generator().manual_seed(seed)
    inputs = torch.randn(samples, 16, generator=generator)
    return TensorDataset(inputs, inputs.sum(1, keepdim=True))


def train_epoch(model, loader, optimizer, device, step):
    for inputs, targets in loader:
        report(step, "training")
        loss = nn.functional.mse_loss(model(inputs.to(device)), targets.to(device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        step += 1
    return loss.item(), step


def validate(network, dataset, args, device, step):
    """Each rank looks at its share; the last has none when the samples do not go round."""
    report(step, "validation")
    share = range(len(dataset))[dist.get_rank() * args.batch_size:][:args.batch_size]
    if not share and not args.fixed:
        return None
    sums = torch.zeros(2, device=device)
    with torch.no_grad():
        for inputs, target in (dataset[sample] for sample in share):
            error = (network(inputs.to(device)) - target.to(device)).square().sum()
            sums += torch.stack([error, torch.ones_like(error)])
    dist.all_reduce(sums)
    return (sums[0] / sums[1]).item()


def main():
    args = parse_arguments()
    dist.init_process_group(args.backend)
    rank = dist.get_rank()
    device = torch.device("cpu")
    if args.backend == "nccl":
        device = torch.device("cuda", int(os.environ["LOCAL_RANK"]) % torch.cuda.device_count())
        torch.cuda.set_device(device)
    torch.manual_seed(21)

    training = make_dataset(1024, seed=1)
    sampler = DistributedSampler(training)
    loader = DataLoader(training, args.batch_size, sampler=sampler)
    validation = make_dataset(args.batch_size * (dist.get_world_size() - 1), seed=2)
    network = nn.Sequential(nn.Linear(16, 32), nn.Tanh(), nn.Linear(32, 1)).to(device)
    model = DistributedDataParallel(network)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

    step = 0
    for epoch in range(args.epochs):
        sampler.set_epoch(epoch)
        loss, step = train_epoch(model, loader, optimizer, device, step)
        error = validate(network, validation, args, device, step)
        if rank == 0:
            print(f"epoch {epoch}: loss {loss:.6f}, validation {error:.6f}", flush=True)

    if rank == 0:
        print(f"final loss {loss.hex()}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
