# SPDX-License-Identifier: Apache-2.0
"""Hugging Face Accelerate."""

import time

import torch
import torch.distributed as dist
from accelerate import Accelerator
from common import batches, main, make_batch, make_network, program

mse = torch.nn.functional.mse_loss


def make_accelerated():
    accelerator = Accelerator(cpu=True)
    model = make_network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    model, optimizer = accelerator.prepare(model, optimizer)
    return accelerator, model, optimizer


def train_step(accelerator, model, optimizer, inputs, targets):
    loss = mse(model(inputs), targets)
    accelerator.backward(loss)
    optimizer.step()
    optimizer.zero_grad()
    return loss.detach()


@program
def waits_on_main_process(args):
    """The main process saves, and waits for all in a branch that only it takes."""
    accelerator, model, optimizer = make_accelerated()
    for number, (inputs, targets) in enumerate(batches(8, args.rank)):
        train_step(accelerator, model, optimizer, inputs, targets)
        if number == 4 and (accelerator.is_main_process or args.fixed):
            accelerator.wait_for_everyone()  # hangs: waits_on_main_process
            accelerator.save(accelerator.unwrap_model(model).state_dict(), f"{args.work}/m.pt")


def log_loss(accelerator, loss):
    if accelerator.is_main_process:
        return float(accelerator.gather(loss).mean())  # hangs: gathers_on_main_process
    return None


@program
def gathers_on_main_process(args):
    """The main process alone gathers the losses, to print their mean."""
    accelerator, model, optimizer = make_accelerated()
    for number, (inputs, targets) in enumerate(batches(8, args.rank)):
        loss = train_step(accelerator, model, optimizer, inputs, targets)
        if number == 4:
            if args.fixed:
                accelerator.gather(loss)
            else:
                log_loss(accelerator, loss)


@program
def breaks_alone(args):
    """Rank 2 stops by its own loss and waits for everyone after the loop."""
    accelerator, model, optimizer = make_accelerated()
    for number, (inputs, targets) in enumerate(batches(8, args.rank)):
        train_step(accelerator, model, optimizer, inputs, targets)
        if number == 4 and args.rank == 2:
            accelerator.set_trigger()
        if accelerator.check_trigger() if args.fixed else accelerator.flag_tensor is not None:
            break
    accelerator.wait_for_everyone()  # hangs: breaks_alone


@program
def uneven_gather(args):
    """The last rank's evaluation batch is shorter, and nobody pads it."""
    accelerator, model, optimizer = make_accelerated()
    for inputs, targets in batches(4, args.rank):
        train_step(accelerator, model, optimizer, inputs, targets)
    predictions = model(make_batch(9, 0, 5 if args.rank == args.ranks - 1 else 8)[0]).detach()
    if args.fixed:
        predictions = accelerator.pad_across_processes(predictions)
    accelerator.gather(predictions)  # hangs: uneven_gather


@program
def healthy_main_process_first(args):
    """Healthy: the main process prepares the data for long, then accumulates with the others."""
    accelerator, model, optimizer = make_accelerated()
    with accelerator.main_process_first():
        if accelerator.is_main_process:
            time.sleep(7)
    for number, (inputs, targets) in enumerate(batches(8, args.rank)):
        with accelerator.accumulate(model):
            train_step(accelerator, model, optimizer, inputs, targets)
    accelerator.gather_for_metrics(torch.ones(2))
    dist.barrier()


if __name__ == "__main__":
    main()
