# SPDX-License-Identifier: Apache-2.0
"""A trainer around Lightning Fabric that makes its data set in the program's main().

    torchrun --nproc-per-node 4 launch_in_constructor.py
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
    parser.add_argument("--download-seconds", type=float, default=3600,
                        help="how long the store of the raw data takes to answer")
    parser.add_argument("--fixed", action="store_true")
    parser.add_argument("--backend",
                        default="nccl" if torch.cuda.is_available() else "nccl_cpu")
    return parser.parse_args()


class Trainer:
    def __init__(self, backend, make_dataset=None):
        self.fabric = Fabric(accelerator="cuda" if backend == "nccl" else "cpu",
                             devices=int(os.environ["LOCAL_WORLD_SIZE"]),
                             strategy=DDPStrategy(process_group_backend=backend))
        self.fabric.launch()
        self.run_name = self.fabric.broadcast(f"run-{os.getpid()}")
        self.fabric.seed_everything(3)
        if make_dataset is not None:  # --fixed: after launch(), and all wait for it
            if self.fabric.is_global_zero:
                make_dataset()
            self.fabric.barrier()
        net = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 2))
        self.model, self.optimizer = self.fabric.setup(
            net, torch.optim.SGD(net.parameters(), lr=0.1))

    def fit(self, dataset, epochs=2):
        loader = self.fabric.setup_dataloaders(DataLoader(dataset, batch_size=64, shuffle=True))
        for epoch in range(epochs):
            for inputs, labels in loader:
                loss = nn.functional.cross_entropy(self.model(inputs), labels)
                self.optimizer.zero_grad()
                self.fabric.backward(loss)
                self.optimizer.step()
            self.fabric.print(f"epoch {epoch}: loss {loss.item():.6f}", flush=True)
        self.fabric.print(f"final loss {loss.item().hex()}", flush=True)


def download(seconds):
    time.sleep(seconds)
    generator = torch.Generator().manual_seed(11)
    inputs = torch.randn(4096, 32, generator=generator)
    return inputs, (inputs.square().sum(1) > 32).long()


def main():
    args = parse_arguments()

    def make_dataset():
        torch.save(download(args.download_seconds), args.data)

    if args.fixed:
        trainer = Trainer(args.backend, make_dataset)
    else:
        if int(os.environ["RANK"]) == 0:
            make_dataset()
        trainer = Trainer(args.backend)
    trainer.fit(TensorDataset(*torch.load(args.data)))
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
