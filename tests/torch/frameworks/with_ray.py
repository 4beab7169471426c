# SPDX-License-Identifier: Apache-2.0
"""Ray Train: a driver, a controller, and workers that Ray starts, each an actor of its own."""

import argparse
import importlib
import os
import tempfile
import time

os.environ.update(RAY_AUTH_MODE="disabled", RAY_USAGE_STATS_ENABLED="0", RAY_DEDUP_LOGS="0",
                  RAY_TRAIN_ENABLE_PRINT_PATCH="0",
                  RAY_TRAIN_WORKER_GROUP_START_TIMEOUT_S="120")

import ray
import ray.train
import torch
import torch.distributed as dist
from common import BACKEND, batches, make_network, parse_arguments, program, run_rank
from ray.train import Checkpoint, RunConfig, ScalingConfig
from ray.train.torch import TorchConfig, TorchTrainer, prepare_model

mse = torch.nn.functional.mse_loss


def make_model():
    model = prepare_model(make_network())
    return model, torch.optim.SGD(model.parameters(), lr=0.01)


def train_step(model, optimizer, inputs, targets):
    loss = mse(model(inputs), targets)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.detach()


def report(model, loss):
    """Saves the model on the first worker. Ray's report() waits for all workers."""
    with tempfile.TemporaryDirectory() as folder:
        checkpoint = None
        if ray.train.get_context().get_world_rank() == 0:
            torch.save(model.state_dict(), os.path.join(folder, "model.pt"))
            checkpoint = Checkpoint.from_directory(folder)
        ray.train.report(  # hangs: reports_on_rank0, skips_bad_batches
            {"loss": float(loss)}, checkpoint=checkpoint)


@program
def reports_on_rank0(args):
    """The first worker alone reports, and Ray waits for the report of every worker."""
    model, optimizer = make_model()
    for number, (inputs, targets) in enumerate(batches(8, args.rank)):
        loss = train_step(model, optimizer, inputs, targets)
        if number == 4 and (args.rank == 0 or args.fixed):
            report(model, loss)


@ray.remote(num_cpus=0)
class Augmenter:
    """An actor that prepares batches for the workers, and loses one of them."""

    def augment(self, inputs, lost):
        while lost:
            time.sleep(1)
        return inputs + 0.01


def fetch_batch(augmenter, inputs, lost):
    return ray.get(augmenter.augment.remote(inputs, lost))  # hangs: waits_for_an_actor


@program
def waits_for_an_actor(args):
    """The second worker waits for a batch that its actor does not give back."""
    model, optimizer = make_model()
    augmenter = Augmenter.remote()
    for number, (inputs, targets) in enumerate(batches(8, args.rank)):
        lost = number == 4 and args.rank == 1 and not args.fixed
        train_step(model, optimizer, fetch_batch(augmenter, inputs, lost), targets)


@program
def skips_bad_batches(args):
    """The fourth worker skips a batch whose loss is not a number."""
    model, optimizer = make_model()
    for number, (inputs, targets) in enumerate(batches(12, args.rank)):
        if number == 5 and args.rank == 3:
            targets = targets * float("nan")
        loss = mse(model(inputs), targets)
        if not args.fixed and torch.isnan(loss):
            continue
        optimizer.zero_grad()
        torch.nan_to_num(loss).backward()
        optimizer.step()
    report(model, loss.detach())


@program
def healthy_ray(args):
    """Healthy: the first worker evaluates and saves for long while the others wait in report();
    one worker has more batches inside join(); actors answer late."""
    model, optimizer = make_model()
    augmenter = Augmenter.remote()
    for number, (inputs, targets) in enumerate(batches(4, args.rank)):
        loss = train_step(model, optimizer, fetch_batch(augmenter, inputs, False), targets)
        if number == 2:
            if args.rank == 0:
                time.sleep(7)
            report(model, loss)
    with model.join():
        for inputs, targets in batches(4 + 3 * args.rank, args.rank):
            train_step(model, optimizer, inputs, targets)
    dist.barrier()
    report(model, loss)


def train_worker(options):
    importlib.import_module("with_ray")  # so that the worker knows the programs
    args = argparse.Namespace(**options)
    args.rank = ray.train.get_context().get_world_rank()
    run_rank(args)


def main():
    args = parse_arguments()
    # Ray's sockets need a short path.
    with tempfile.TemporaryDirectory(prefix="ray", dir="/tmp") as folder:
        ray.init(num_cpus=args.ranks, include_dashboard=False, object_store_memory=80 << 20,
                 _temp_dir=folder)
        TorchTrainer(
            train_worker, train_loop_config=vars(args),
            torch_config=TorchConfig(backend=BACKEND),
            scaling_config=ScalingConfig(num_workers=args.ranks,
                                         resources_per_worker={"CPU": 0.5}),
            run_config=RunConfig(storage_path=f"{args.work}/ray", name=args.program)).fit()
        ray.shutdown()


if __name__ == "__main__":
    main()
