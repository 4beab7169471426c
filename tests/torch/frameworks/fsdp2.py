# SPDX-License-Identifier: Apache-2.0
"""FSDP2: fully_shard() on a mesh, and what people do between its steps."""

import time

import torch
import torch.distributed as dist
from common import batches, main, make_batch, make_network, program
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

mse = torch.nn.functional.mse_loss


def make_sharded(args, **options):
    mesh = init_device_mesh("cpu", (args.ranks,), mesh_dim_names=("dp",))
    model = make_network()
    for layer in model:
        if any(True for _ in layer.parameters()):
            fully_shard(layer, mesh=mesh, **options)
    fully_shard(model, mesh=mesh, **options)
    return model, torch.optim.SGD(model.parameters(), lr=0.01)


def train_step(model, optimizer, inputs, targets):
    loss = mse(model(inputs), targets)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return loss.detach()


def weight_norms(model):
    return {name: float(parameter.full_tensor().norm())  # hangs: full_tensor_in_log
            for name, parameter in model.named_parameters()}


@program
def full_tensor_in_log(args):
    """Rank 0 alone gathers the weights for its log."""
    model, optimizer = make_sharded(args)
    for number, (inputs, targets) in enumerate(batches(8, args.rank)):
        train_step(model, optimizer, inputs, targets)
        if number == 4 and (args.rank == 0 or args.fixed):
            weight_norms(model)


@program
def clips_alone(args):
    """Rank 2 alone clips its gradients: its loss exploded."""
    model, optimizer = make_sharded(args)
    for number, (inputs, targets) in enumerate(batches(8, args.rank)):
        loss = mse(model(inputs), targets)
        loss.backward()
        if number == 4 and (args.rank == 2 or args.fixed):
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)  # hangs: clips_alone
        optimizer.step()
        optimizer.zero_grad()


def save(model, args):
    if args.rank == 0 or args.fixed:
        state = get_model_state_dict(  # hangs: saves_on_rank0
            model, options=StateDictOptions(full_state_dict=True, cpu_offload=True))
        if args.rank == 0:
            torch.save(state, f"{args.work}/model.pt")
    dist.barrier()


@program
def saves_on_rank0(args):
    """Rank 0 alone gathers the whole state; the others wait in a barrier."""
    model, optimizer = make_sharded(args)
    for inputs, targets in batches(4, args.rank):
        train_step(model, optimizer, inputs, targets)
    save(model, args)


def validate(model, args):
    with torch.no_grad():
        return float(mse(model(make_batch(99, 0)[0]), make_batch(99, 0)[1]))


@program
def validates_on_rank0(args):
    """Rank 0 alone runs the sharded model on the validation set."""
    model, optimizer = make_sharded(args)
    for number, (inputs, targets) in enumerate(batches(8, args.rank)):
        loss = mse(model(inputs), targets)  # hangs: validates_on_rank0
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if number == 3 and (args.rank == 0 or args.fixed):
            validate(model, args)


@program
def skips_backward(args):
    """Rank 1 catches an error of its loss, between forward and backward."""
    model, optimizer = make_sharded(args)
    for number, (inputs, targets) in enumerate(batches(8, args.rank)):
        if number == 4 and args.rank == 1 and not args.fixed:
            targets = targets.reshape(4, 2)
        try:
            prediction = model(inputs)  # hangs: skips_backward
            mse(prediction, targets).backward()
            optimizer.step()
            optimizer.zero_grad()
        except RuntimeError as error:
            print(f"rank {args.rank} skips batch {number}: {error}", flush=True)


@program
def healthy_accumulation(args):
    """Healthy: gradients are accumulated, evaluation by all, a long save by rank 0 alone."""
    model, optimizer = make_sharded(args, reshard_after_forward=False)
    for number, (inputs, targets) in enumerate(batches(8, args.rank)):
        model.set_requires_gradient_sync(number % 2 == 1)
        mse(model(inputs), targets).backward()
        if number % 2 == 1:
            optimizer.step()
            optimizer.zero_grad()
        if number == 3:
            state = get_model_state_dict(model, options=StateDictOptions(full_state_dict=True))
            if args.rank == 0:
                torch.save(state, f"{args.work}/model.pt")
                time.sleep(7)
    validate(model, args)


if __name__ == "__main__":
    main()
