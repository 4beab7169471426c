# SPDX-License-Identifier: Apache-2.0
"""torch.distributed.pipelining: one stage on each rank."""

import time

import torch
import torch.distributed as dist
from common import WIDTH, answer_that_never_comes, main, make_batch, program
from torch import nn
from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe

mse = nn.functional.mse_loss


def make_stage(args):
    torch.manual_seed(args.rank)
    layer = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Tanh())
    return PipelineStage(layer, args.rank, args.ranks, torch.device("cpu"))


def run_step(schedule, args, inputs):
    """One step of this rank's part of the pipeline."""
    if args.rank == 0:
        schedule.step(inputs)
    elif args.rank == args.ranks - 1:
        schedule.step(target=inputs)
    else:
        schedule.step()


def load_batch(number, stuck):
    if stuck:
        answer_that_never_comes().get()  # hangs: first_stage_has_no_data
    return make_batch(number, 0, 16)[0]


@program
def first_stage_has_no_data(args):
    """The first stage waits for its reader."""
    schedule = Schedule1F1B(make_stage(args), n_microbatches=4, loss_fn=mse)
    for number in range(6):
        run_step(schedule, args, load_batch(number, number == 3 and args.rank == 0
                                            and not args.fixed))


@program
def other_microbatches(args):
    """Rank 2 reads another number of microbatches from its configuration."""
    number = 2 if args.rank == 2 and not args.fixed else 4
    schedule = ScheduleGPipe(make_stage(args), n_microbatches=number, loss_fn=mse)
    for step in range(3):
        if args.rank == 0:
            schedule.step(make_batch(step, 0, 16)[0])
        elif args.rank == args.ranks - 1:
            schedule.step(target=make_batch(step, 0, 16)[0])
        else:
            schedule.step()  # hangs: other_microbatches


@program
def one_stage_stops_early(args):
    """The last stage's loader has one batch less; it waits in the barrier after the loop."""
    schedule = Schedule1F1B(make_stage(args), n_microbatches=4, loss_fn=mse)
    steps = 15 if args.rank == args.ranks - 1 and not args.fixed else 16
    for number in range(steps):
        run_step(schedule, args, make_batch(number, 0, 16)[0])
    dist.barrier()  # hangs: one_stage_stops_early


@program
def stage_fails(args):
    """Rank 1's stage raises; the process ends and its neighbours wait."""
    stage = make_stage(args)
    schedule = Schedule1F1B(stage, n_microbatches=4, loss_fn=mse)
    for number in range(6):
        if number == 3 and args.rank == 1 and not args.fixed:
            raise ValueError("stage 1: activations are not finite")  # hangs: stage_fails
        run_step(schedule, args, make_batch(number, 0, 16)[0])


@program
def healthy_slow_stage(args):
    """Healthy: the last stage is slow, and fills its pauses with work of its own."""
    schedule = Schedule1F1B(make_stage(args), n_microbatches=4, loss_fn=mse)
    for number in range(6):
        run_step(schedule, args, make_batch(number, 0, 16)[0])
        if args.rank == args.ranks - 1 and number % 3 == 1:
            time.sleep(7)


if __name__ == "__main__":
    main()
