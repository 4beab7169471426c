# SPDX-License-Identifier: Apache-2.0
"""A job whose rank 0 logs to Weights & Biases, MLflow and TensorBoard; rank 1 leaves it waiting.

    torchrun --nproc-per-node 2 with_trackers.py WORK [--fixed]
"""

import os
import pathlib
import sys
import time

import rollcall
import torch
import torch.distributed as dist
from common import answer_that_never_comes


def start_trackers(work):
    os.environ.update(WANDB_MODE="offline", WANDB_DIR=str(work), WANDB_SILENT="true",
                      MLFLOW_ALLOW_FILE_STORE="true")
    import mlflow
    import wandb
    from torch.utils.tensorboard import SummaryWriter

    wandb.init(project="rollcall")
    mlflow.set_tracking_uri(f"file://{work}/mlruns")
    mlflow.start_run()
    return SummaryWriter(str(work / "tensorboard"))


def wait_for(file):
    while not file.exists():
        time.sleep(0.05)


def main():
    work, is_fixed = pathlib.Path(sys.argv[1]), "--fixed" in sys.argv
    rank = int(os.environ["RANK"])
    writer = start_trackers(work) if rank == 0 else None
    # Imports of the trackers take longer than a hang here.
    (work / "ready").touch() if rank == 0 else wait_for(work / "ready")
    dist.init_process_group("nccl_cpu")
    rollcall.link_incidents(page="https://rollcall.example:7656/")
    for step in range(10):
        dist.all_reduce(torch.ones(4))
        if writer is not None:
            writer.add_scalar("loss", 1 / (step + 1), step)
    if rank == 1 and not is_fixed:
        answer_that_never_comes().get()
    dist.all_reduce(torch.ones(4))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
