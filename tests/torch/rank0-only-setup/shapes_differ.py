# SPDX-License-Identifier: Apache-2.0
"""A text classifier with Lightning Fabric whose vocabulary comes from the text that was read.

    torchrun --nproc-per-node 4 shapes_differ.py
"""

import argparse
import collections
import os
import random

import torch
from lightning.fabric import Fabric
from lightning.fabric.strategies import DDPStrategy
from torch import nn

WORDS = [f"word{number}" for number in range(2000)]


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--fixed", action="store_true")
    parser.add_argument("--backend",
                        default="nccl" if torch.cuda.is_available() else "nccl_cpu")
    return parser.parse_args()


def read_shard(shard, shards):
    """One shard of the corpus: lines of words, the common ones more often. The last is short."""
    source = random.Random(shard)
    return [[WORDS[int(len(WORDS) * source.random() ** 3)] for _ in range(20)]
            for _ in range(20 if shard == shards - 1 else 200)]


def most_common(lines, limit=500):
    counts = collections.Counter(word for line in lines for word in line)
    return [word for word, _ in counts.most_common(limit)]


def main():
    args = parse_arguments()
    fabric = Fabric(accelerator="cuda" if args.backend == "nccl" else "cpu",
                    devices=int(os.environ["LOCAL_WORLD_SIZE"]),
                    strategy=DDPStrategy(process_group_backend=args.backend))
    fabric.launch()
    fabric.seed_everything(3)

    lines = read_shard(fabric.global_rank, fabric.world_size)
    words = most_common(lines)
    if args.fixed:
        words = fabric.broadcast(words)
    vocabulary = {word: number for number, word in enumerate(words, start=1)}

    net = nn.Sequential(nn.EmbeddingBag(len(vocabulary) + 1, 32), nn.Linear(32, 2))
    model, optimizer = fabric.setup(net, torch.optim.SGD(net.parameters(), lr=0.1))
    tokens = torch.tensor([[vocabulary.get(word, 0) for word in line] for line in lines],
                          device=fabric.device)
    labels = (tokens.sum(1) % 2).long()
    for _ in range(args.steps):
        loss = nn.functional.cross_entropy(model(tokens), labels)
        optimizer.zero_grad()
        fabric.backward(loss)
        optimizer.step()
    fabric.print(f"final loss {loss.item().hex()}", flush=True)
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
