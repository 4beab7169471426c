# SPDX-License-Identifier: Apache-2.0
"""Trains on records of which some are damaged; what cannot be read is left out.

    torchrun --nproc-per-node 4 dropped_batch.py
"""

import argparse
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset, DistributedSampler


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--fixed", action="store_true",
                        help="put another record in the place of a damaged one")
    parser.add_argument("--backend",
                        default="nccl" if torch.cuda.is_available() else "nccl_cpu")
    return parser.parse_args()


class Records(Dataset):
    """One file of 16 records, which all fall to the last rank, is damaged."""

    def __init__(self, records, ranks):
        generator = torch.Generator().manual_seed(3)
        self.inputs = torch.randn(records, 24, generator=generator)
        self.damaged = {ranks - 1 + i * ranks for i in range(16)}

    def __len__(self):
        return len(self.inputs)

    def __getitem__(self, index):
        if index in self.damaged:
            return None
        return self.inputs[index], self.inputs[index].sum()


def leave_out_damaged(samples):
    samples = [sample for sample in samples if sample is not None]
    return torch.utils.data.default_collate(samples) if samples else None


def put_others_in_place(samples):
    whole = [sample for sample in samples if sample is not None]
    if not whole:
        whole = [(torch.zeros(24), torch.tensor(0.0))]
    samples = [sample or whole[i % len(whole)] for i, sample in enumerate(samples)]
    return torch.utils.data.default_collate(samples)


def train_epoch(model, loader, optimizer, device):
    for batch in loader:
        if batch is None:
            continue
        inputs, targets = (part.to(device) for part in batch)
        loss = nn.functional.mse_loss(model(inputs).squeeze(1), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


def main():
    args = parse_arguments()
    dist.init_process_group(args.backend)
    device = torch.device("cpu")
    if args.backend == "nccl":
        device = torch.device("cuda", int(os.environ["LOCAL_RANK"]) % torch.cuda.device_count())
        torch.cuda.set_device(device)
    torch.manual_seed(21)

    records = Records(960, dist.get_world_size())
    sampler = DistributedSampler(records, shuffle=False)
    loader = DataLoader(records, args.batch_size, sampler=sampler,
                        collate_fn=put_others_in_place if args.fixed else leave_out_damaged)
    net = nn.Sequential(nn.Linear(24, 32), nn.ReLU(), nn.Linear(32, 1)).to(device)
    model = DistributedDataParallel(net)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for epoch in range(args.epochs):
        loss = train_epoch(model, loader, optimizer, device)
        dist.barrier()  # the epoch's end, for all
        if dist.get_rank() == 0:
            print(f"epoch {epoch}: loss {loss:.6f}", flush=True)

    if dist.get_rank() == 0:
        print(f"final loss {loss.hex()}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
