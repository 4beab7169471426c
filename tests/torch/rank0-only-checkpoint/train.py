# SPDX-License-Identifier: Apache-2.0
"""Trains a model sharded with FSDP2 (fully_shard) and saves it after every epoch.

    torchrun --nproc-per-node 4 train.py
"""

import argparse
import os
import pathlib

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard


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


def make_model(mesh):
    torch.manual_seed(9)
    layers = [nn.Linear(64, 64) for _ in range(3)]
    model = nn.Sequential(*layers, nn.Linear(64, 1))
    for layer in layers:
        fully_shard(layer, mesh=mesh)
    return fully_shard(model, mesh=mesh)


def full_state(model):
    return get_model_state_dict(model, options=StateDictOptions(
        full_state_dict=True, cpu_offload=True))


def save(model, args):
    if args.fixed:
        state = full_state(model)
        if dist.get_rank() == 0:
            torch.save(state, args.checkpoint)
    elif dist.get_rank() == 0:
        torch.save(full_state(model), args.checkpoint)
    dist.barrier()


def main():
    args = parse_arguments()
    dist.init_process_group(args.backend)
    rank = dist.get_rank()
    device = torch.device("cpu")
    if args.backend == "nccl":
        device = torch.device("cuda", int(os.environ["LOCAL_RANK"]) % torch.cuda.device_count())
        torch.cuda.set_device(device)

    mesh = init_device_mesh(device.type, (dist.get_world_size(),), mesh_dim_names=("fsdp",))
    model = make_model(mesh)
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
