# SPDX-License-Identifier: Apache-2.0
"""Megatron-core: its groups, its tensor-parallel layers, its transfers between pipeline stages."""

import time

import torch
import torch.distributed as dist
from common import WIDTH, answer_that_never_comes, main, make_batch, program
from megatron.core import ModelParallelConfig, parallel_state
from megatron.core.pipeline_parallel.p2p_communication import P2PCommunicator
from megatron.core.tensor_parallel import ColumnParallelLinear, RowParallelLinear
from torch import nn

# Megatron makes its tensors on the current GPU; here that is the CPU.
torch.cuda.current_device = lambda: "cpu"
SHAPE = (4, 2, WIDTH)


def make_config(**options):
    return ModelParallelConfig(use_cpu_initialization=True, params_dtype=torch.float32,
                               pipeline_dtype=torch.float32, batch_p2p_comm=True,
                               batch_p2p_sync=False, **options)


class Mlp(nn.Module):
    def __init__(self, config):
        super().__init__()
        options = {"config": config, "init_method": nn.init.xavier_normal_, "bias": False}
        self.up = ColumnParallelLinear(WIDTH, 2 * WIDTH, **options)
        self.down = RowParallelLinear(2 * WIDTH, WIDTH, input_is_parallel=True,
                                      skip_bias_add=False, **options)

    def forward(self, inputs):
        return self.down(torch.relu(self.up(inputs)[0]))[0]


def train_step(model, inputs):
    loss = model(inputs).square().mean()
    loss.backward()
    for parameter in model.parameters():
        dist.all_reduce(parameter.grad, group=parallel_state.get_data_parallel_group())
        parameter.data -= 0.01 * parameter.grad
        parameter.grad = None
    return loss.detach()


def make_tensor_parallel():
    parallel_state.initialize_model_parallel(tensor_model_parallel_size=2)
    return Mlp(make_config(tensor_model_parallel_size=2))


def average_over_all(loss):
    dist.all_reduce(loss)  # hangs: drops_bad_labels
    return loss / dist.get_world_size()


@program
def drops_bad_labels(args):
    """Rank 3 drops a batch with bad labels; its tensor-parallel peer, rank 2, does not."""
    model = make_tensor_parallel()
    replica = parallel_state.get_data_parallel_rank()
    losses = []
    for number in range(6):
        if number == 3 and args.rank == 3 and not args.fixed:
            continue
        losses.append(train_step(model, make_batch(number, replica)[0].unsqueeze(0)))
    average_over_all(torch.stack(losses).mean())


@program
def reduces_over_wrong_group(args):
    """Rank 1 averages its loss over the data-parallel group, the others over the model's."""
    model = make_tensor_parallel()
    replica = parallel_state.get_data_parallel_rank()
    for number in range(16):
        loss = train_step(model, make_batch(number, replica)[0].unsqueeze(0))
        wrong = number == 12 and args.rank == 1 and not args.fixed
        group = (parallel_state.get_data_parallel_group() if wrong
                 else parallel_state.get_tensor_model_parallel_group())
        dist.all_reduce(loss, group=group)  # hangs: reduces_over_wrong_group


def run_stages(pipeline, layer, args, inputs):
    """One microbatch forward and backward through this rank's stage."""
    first, last = args.rank == 0, args.rank == args.ranks - 1
    received = pipeline.recv_forward(SHAPE, first)
    inputs = inputs if first else received
    output = layer(inputs)
    pipeline.send_forward(output, last)
    gradient = pipeline.recv_backward(SHAPE, last)
    torch.autograd.backward(output, torch.ones(SHAPE) if last else gradient)
    if not first:
        pipeline.send_backward(inputs.grad, first)


def next_microbatch(number, stuck):
    if stuck:
        answer_that_never_comes().get()  # hangs: megatron_waits_for_data
    return torch.full(SHAPE, float(number))


def make_pipeline(args):
    parallel_state.initialize_model_parallel(pipeline_model_parallel_size=args.ranks)
    return P2PCommunicator(parallel_state.get_pipeline_model_parallel_group(), make_config(
        pipeline_model_parallel_size=args.ranks))


@program
def megatron_waits_for_data(args):
    """The first stage's reader does not deliver the next microbatch."""
    pipeline = make_pipeline(args)
    layer = nn.Linear(WIDTH, WIDTH)
    for number in range(6):
        stuck = number == 4 and args.rank == 0 and not args.fixed
        run_stages(pipeline, layer, args, next_microbatch(number, stuck))


@program
def healthy_parallel(args):
    """Healthy: one tensor-parallel rank pauses, then one replica; losses go over both groups."""
    model = make_tensor_parallel()
    replica = parallel_state.get_data_parallel_rank()
    losses = []
    for number in range(8):
        if (number == 3 and args.rank == 1) or (number == 6 and replica == 1):
            time.sleep(7)
        loss = train_step(model, make_batch(number, replica)[0].unsqueeze(0))
        dist.all_reduce(loss, group=parallel_state.get_tensor_model_parallel_group())
        if number % 3 == 2:
            dist.all_reduce(loss, group=parallel_state.get_data_parallel_group())
        losses.append(loss)
    average_over_all(torch.stack(losses).mean())


@program
def healthy_pipeline(args):
    """Healthy: each step has another number of microbatches; the first and the last stage pause."""
    pipeline = make_pipeline(args)
    layer = nn.Linear(WIDTH, WIDTH)
    for step, microbatches in enumerate((2, 1, 3, 2, 4)):
        for number in range(microbatches):
            if number == 1 and (step, args.rank) in ((0, args.ranks - 1), (3, 0)):
                time.sleep(7)
            run_stages(pipeline, layer, args, torch.full(SHAPE, float(number)))
        average_over_all(layer.weight.grad.norm())


if __name__ == "__main__":
    main()
