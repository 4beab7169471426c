# SPDX-License-Identifier: Apache-2.0
"""Hangs of JAX with several processes on CPUs. Needs the package jax."""

import os

import jax
import jax.numpy as jnp
from common import answer_that_never_comes, compile_kernels, main, program, rounds, save_checkpoint
from jax.experimental import multihost_utils

HOUR = 3600


def join(args):
    jax.config.update("jax_platforms", "cpu")
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    address = f"{os.environ['MASTER_ADDR']}:{os.environ['MASTER_PORT']}"
    jax.distributed.initialize(address, args.ranks, args.rank, initialization_timeout=HOUR)


def gather(step):
    """A collective of all processes."""
    return multihost_utils.process_allgather(jnp.full((8,), step))


def prepare_data(args):
    if args.rank == 1 and not args.fixed:
        answer_that_never_comes().get()  # hangs: never_initializes
    save_checkpoint(args.seconds if args.fixed else 0, f"data-{args.rank}")


@program
def never_initializes(args):
    """Rank 1 prepares its data before jax.distributed.initialize, and does not come to it."""
    prepare_data(args)
    join(args)
    gather(0)
    jax.distributed.shutdown()


def evaluate(stuck):
    if stuck:
        answer_that_never_comes().get()  # hangs: skips_a_gather


@program
def skips_a_gather(args):
    """Rank 2 waits in its evaluation. The others are in process_allgather."""
    join(args)
    number, pause = rounds(args, 3)
    for step in range(number):
        compile_kernels(pause)
        evaluate(stuck=step == 4 and args.rank == 2 and not args.fixed)
        gather(step)
    jax.distributed.shutdown()


def wait_at(name):
    from jax._src import distributed
    distributed.global_state.client.wait_at_barrier(name, HOUR * 1000)  # hangs: waits_at_another_barrier


@program
def waits_at_another_barrier(args):
    """Rank 1 counts its checkpoints differently: it waits at a barrier of another name than the others."""
    join(args)
    number, pause = rounds(args, 4)
    for step in range(number):
        if args.rank == 0:
            save_checkpoint(pause)
        ahead = step == 4 and args.rank == 1 and not args.fixed
        wait_at(f"saved-{step + 1 if ahead else step}")
    jax.distributed.shutdown()


@program
def leaves_a_step_early(args):
    """Rank 1 has a step fewer, and waits in jax.distributed.shutdown. The others are in process_allgather."""
    join(args)
    number, pause = rounds(args, 3)
    fewer = 1 if args.rank == 1 and not args.fixed else 0
    for step in range(number - fewer):
        compile_kernels(pause)
        gather(step)
    jax.distributed.shutdown()  # hangs: leaves_a_step_early


if __name__ == "__main__":
    main()
