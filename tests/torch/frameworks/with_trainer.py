# SPDX-License-Identifier: Apache-2.0
"""Hugging Face Trainer."""

import os
import threading
import time

import torch
from common import WIDTH, main, make_network, program
from torch import nn
from torch.utils.data import Dataset
from transformers import EarlyStoppingCallback, Trainer, TrainerCallback, TrainingArguments

os.environ["ACCELERATE_USE_CPU"] = "true"


class Samples(Dataset):
    def __init__(self, number=128):
        self.number = number

    def __len__(self):
        return self.number

    def __getitem__(self, index):
        values = torch.randn(WIDTH, generator=torch.Generator().manual_seed(index))
        return {"inputs": values, "labels": values.sum()}


class Regression(nn.Module):
    def __init__(self):
        super().__init__()
        self.network = make_network()

    def forward(self, inputs, labels):
        prediction = self.network(inputs).squeeze(1)
        return {"loss": nn.functional.mse_loss(prediction, labels), "logits": prediction}


def make_trainer(args, callbacks=(), **options):
    arguments = TrainingArguments(
        output_dir=f"{args.work}/trainer", use_cpu=True, per_device_train_batch_size=4,
        report_to=[], logging_steps=4, disable_tqdm=True, dataloader_pin_memory=False,
        **{"max_steps": 8, "save_strategy": "no", **options})
    return Trainer(model=Regression(), args=arguments, train_dataset=Samples(),
                   eval_dataset=Samples(101), callbacks=list(callbacks))


class EvaluateWhenLogging(TrainerCallback):
    trainer = None
    everywhere = False

    def on_log(self, args, state, control, logs, **kwargs):
        if "loss" not in logs:  # what evaluate() itself logs
            return
        if (state.is_world_process_zero or self.everywhere) and state.global_step == 4:
            self.trainer.evaluate()  # hangs: evaluates_on_rank0


@program
def evaluates_on_rank0(args):
    """A callback evaluates on the first process only."""
    callback = EvaluateWhenLogging()
    callback.trainer = make_trainer(args, [callback])
    callback.everywhere = args.fixed
    callback.trainer.train()


class StopByOwnLoss(TrainerCallback):
    def __init__(self, rank):
        self.rank = rank

    def on_step_end(self, args, state, control, **kwargs):
        control.should_training_stop = state.global_step == 5 and args.process_index == self.rank


@program
def stops_alone(args):
    """A callback stops training on rank 1 only, which goes on to evaluate."""
    trainer = make_trainer(args, [] if args.fixed else [StopByOwnLoss(1)])
    trainer.train()  # hangs: stops_alone
    trainer.evaluate()  # hangs: stops_alone


class Loading(Trainer):
    stuck = None

    def training_step(self, *arguments, **keywords):
        if self.stuck and self.state.global_step == 3:
            self.stuck.acquire()  # hangs: waits_in_training_step
        return super().training_step(*arguments, **keywords)


@program
def waits_in_training_step(args):
    """Rank 3's training_step() waits for a lock that a thread never gives back."""
    trainer = make_trainer(args)
    trainer.__class__ = Loading
    if args.rank == 3 and not args.fixed:
        trainer.stuck = threading.Lock()
        trainer.stuck.acquire()
    trainer.train()


class UploadSlowly(TrainerCallback):
    def on_save(self, args, state, control, **kwargs):
        if state.is_world_process_zero and state.global_step == 4:
            time.sleep(7)


@program
def healthy_evaluation(args):
    """Healthy: all accumulate, evaluate, save and stop early; rank 0 alone uploads for long."""
    trainer = make_trainer(
        args, [UploadSlowly(), EarlyStoppingCallback(early_stopping_patience=2,
                                                     early_stopping_threshold=1e6)],
        max_steps=40, gradient_accumulation_steps=2, eval_strategy="steps", eval_steps=4,
        save_strategy="steps", save_steps=4, load_best_model_at_end=True)
    trainer.train()
    assert trainer.state.global_step == 12
    trainer.evaluate()


if __name__ == "__main__":
    main()
