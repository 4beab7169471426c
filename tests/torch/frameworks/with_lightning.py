# SPDX-License-Identifier: Apache-2.0
"""Lightning Trainer."""

import os
import time

import lightning
import torch
from common import BACKEND, WIDTH, main, make_network, program
from lightning.pytorch.callbacks import EarlyStopping, ModelCheckpoint
from lightning.pytorch.strategies import DDPStrategy
from torch.utils.data import DataLoader, TensorDataset


def make_loader(number=64):
    inputs = torch.randn(number, WIDTH, generator=torch.Generator().manual_seed(1))
    return DataLoader(TensorDataset(inputs, inputs.sum(1, keepdim=True)), batch_size=4)


class Regression(lightning.LightningModule):
    def __init__(self, fixed):
        super().__init__()
        self.network = make_network()
        self.fixed = fixed

    def training_step(self, batch, number):
        return torch.nn.functional.mse_loss(self.network(batch[0]), batch[1])

    def validation_step(self, batch, number):
        return torch.nn.functional.mse_loss(self.network(batch[0]), batch[1])

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.01)


def fit(model, args, **options):
    trainer = lightning.Trainer(
        accelerator="cpu", devices=args.ranks, logger=False,
        strategy=DDPStrategy(process_group_backend=BACKEND), enable_progress_bar=False,
        enable_model_summary=False, default_root_dir=args.work, log_every_n_steps=1,
        **{"max_epochs": 2, "enable_checkpointing": False, "num_sanity_val_steps": 0, **options})
    trainer.fit(model, make_loader(), make_loader(16))
    return trainer


class LogsOnRankZero(Regression):
    def training_step(self, batch, number):
        loss = super().training_step(batch, number)
        if number == 2 and (self.trainer.is_global_zero or self.fixed):
            self.log("loss", loss, sync_dist=True)  # hangs: logs_on_rank_zero
        return loss


@program
def logs_on_rank_zero(args):
    """The first rank alone logs with sync_dist=True."""
    fit(LogsOnRankZero(args.fixed), args)


class SavesOnRankZero(Regression):
    def on_train_epoch_end(self):
        if self.trainer.is_global_zero or self.fixed:
            self.trainer.save_checkpoint(  # hangs: saves_on_rank_zero
                f"{self.trainer.default_root_dir}/m.ckpt")


@program
def saves_on_rank_zero(args):
    """The first rank alone calls save_checkpoint(), which ends with a barrier."""
    fit(SavesOnRankZero(args.fixed), args)


class Stops(Regression):
    def on_train_batch_end(self, outputs, batch, number):
        bad = torch.tensor(float(number == 2 and self.global_rank == 2))
        if self.fixed:
            bad = self.trainer.strategy.reduce(bad, reduce_op="sum")
        self.trainer.should_stop = bool(bad > 0)


@program
def stops_alone_in_lightning(args):
    """Rank 2 sets should_stop by its own loss."""
    fit(Stops(args.fixed), args, limit_val_batches=0)
    torch.distributed.all_reduce(torch.ones(3))  # hangs: stops_alone_in_lightning


class Uploads(Regression):
    def validation_step(self, batch, number):
        self.log("loss", super().validation_step(batch, number), sync_dist=True)

    def on_train_epoch_end(self):
        if self.trainer.is_global_zero and self.current_epoch == 0:
            time.sleep(7)


@program
def healthy_epochs(args):
    """Healthy: all accumulate, validate, save and stop early; rank 0 alone uploads for long."""
    trainer = fit(Uploads(args.fixed), args, max_epochs=9, accumulate_grad_batches=3,
                  num_sanity_val_steps=2, enable_checkpointing=True,
                  callbacks=[EarlyStopping("loss", min_delta=1e6, patience=2),
                             ModelCheckpoint(args.work, monitor="loss")])
    assert trainer.current_epoch == 3
    trainer.validate(trainer.model, make_loader(20))


os.environ.setdefault("PL_DISABLE_FORK", "1")

if __name__ == "__main__":
    main()
