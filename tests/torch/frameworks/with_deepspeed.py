# SPDX-License-Identifier: Apache-2.0
"""DeepSpeed: ZeRO stage 3 and the pipeline engine."""

import os
import time

os.environ["DS_ACCELERATOR"] = "cpu"

import deepspeed
import torch
from common import BACKEND, WIDTH, answer_that_never_comes, batches, main, make_network, program
from deepspeed.pipe import PipelineModule
from torch import nn

mse = nn.functional.mse_loss
CONFIG = {
    "train_micro_batch_size_per_gpu": 8,
    "zero_allow_untested_optimizer": True,
    "zero_optimization": {"stage": 3, "stage3_param_persistence_threshold": 0},
}


class TwoPaths(nn.Module):
    """A small model with an expert that a batch may or may not need."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(4)
        self.network = make_network(4)
        self.expert = nn.Linear(WIDTH, WIDTH)

    def forward(self, inputs, skip):
        if not skip:
            inputs = inputs + self.expert(inputs)  # hangs: skips_an_expert
        return self.network(inputs)  # hangs: skips_an_expert


def make_engine(**options):
    deepspeed.init_distributed(dist_backend=BACKEND)
    model = TwoPaths()
    engine, *_ = deepspeed.initialize(
        model=model, optimizer=torch.optim.SGD(model.parameters(), lr=0.01),
        config={**CONFIG, **options})
    return engine


@program
def skips_an_expert(args):
    """Rank 1's batch does not use the expert, whose weights ZeRO-3 gathers from all."""
    engine = make_engine()
    for number, (inputs, targets) in enumerate(batches(6, args.rank)):
        skip = number == 3 and (args.rank == 1 or args.fixed)
        loss = mse(engine(inputs, skip), targets)
        engine.backward(loss)  # hangs: skips_an_expert
        engine.step()  # hangs: skips_an_expert


def look_at_weights(engine):
    with deepspeed.zero.GatheredParameters(  # hangs: gathers_on_rank0
            list(engine.module.network.parameters())):
        return float(next(engine.module.network.parameters()).norm())


@program
def gathers_on_rank0(args):
    """Rank 0 alone gathers the weights, to look at them."""
    engine = make_engine()
    for number, (inputs, targets) in enumerate(batches(6, args.rank)):
        engine.backward(mse(engine(inputs, False), targets))
        engine.step()
        if number == 3 and (args.rank == 0 or args.fixed):
            look_at_weights(engine)


@program
def zero_saves_on_rank0(args):
    """Rank 0 alone calls save_checkpoint()."""
    engine = make_engine()
    for number, (inputs, targets) in enumerate(batches(6, args.rank)):
        engine.backward(mse(engine(inputs, False), targets))
        engine.step()
        if number == 3 and (args.rank == 0 or args.fixed):
            engine.save_checkpoint(args.work)  # hangs: zero_saves_on_rank0


def make_pipeline(args):
    deepspeed.init_distributed(dist_backend=BACKEND)
    torch.manual_seed(4)
    layers = [layer for _ in range(args.ranks) for layer in (nn.Linear(WIDTH, WIDTH), nn.Tanh())]
    module = PipelineModule(layers=layers, num_stages=args.ranks, loss_fn=mse)
    engine, *_ = deepspeed.initialize(
        model=module, optimizer=torch.optim.SGD(module.parameters(), lr=0.01),
        config={"train_micro_batch_size_per_gpu": 8, "gradient_accumulation_steps": 2})
    return engine


@program
def stage_without_data(args):
    """The pipeline's last stage waits for labels."""
    engine = make_pipeline(args)

    def read():
        number = 0
        while True:
            if number == 4 and args.rank == args.ranks - 1 and not args.fixed:
                answer_that_never_comes().get()  # hangs: stage_without_data
            inputs = torch.ones(8, WIDTH) * number
            yield inputs, inputs
            number += 1

    reader = read()
    for _ in range(4):
        engine.train_batch(reader)


@program
def healthy_stages(args):
    """Healthy: the pipeline's last stage, then its first, waits for long for data."""
    engine = make_pipeline(args)

    def read():
        for number in range(12):
            if (args.rank, number) in ((args.ranks - 1, 3), (0, 6)):
                time.sleep(7)
            inputs = torch.ones(8, WIDTH) * number
            yield inputs, inputs

    reader = read()
    for _ in range(4):
        engine.train_batch(reader)
    engine.eval_batch(reader)
    engine.save_checkpoint(args.work)


@program
def healthy_zero(args):
    """Healthy: all accumulate, gather and save; some steps use no expert; ranks 0 and 2 are slow
    alone."""
    engine = make_engine(gradient_accumulation_steps=2)
    for number, (inputs, targets) in enumerate(batches(8, args.rank)):
        engine.backward(mse(engine(inputs, skip=number in (2, 5)), targets))
        engine.step()
        if number == 3:
            norm = look_at_weights(engine)
            engine.save_checkpoint(args.work)
            if args.rank == 0:
                print(f"weights {norm}")
                time.sleep(7)
        if number == 6 and args.rank == 2:
            time.sleep(7)
    engine.load_checkpoint(args.work)


if __name__ == "__main__":
    main()
