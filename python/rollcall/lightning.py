# SPDX-License-Identifier: Apache-2.0
"""Tells Rollcall the step and the phase of a Lightning Trainer.

    trainer = lightning.Trainer(callbacks=[rollcall.lightning.RollcallCallback()], ...)

Needs `import rollcall.lightning`. Works with Lightning and pytorch_lightning 2, and costs one branch where
the library is not preloaded.
"""

try:
    from lightning.pytorch.callbacks import Callback
except ImportError:
    from pytorch_lightning.callbacks import Callback

from rollcall import set_phase, set_step


class RollcallCallback(Callback):
    def on_train_batch_start(self, trainer, pl_module, batch, batch_idx):
        set_step(trainer.global_step)

    def on_validation_start(self, trainer, pl_module):
        set_phase("sanity check" if trainer.sanity_checking else "validation")

    def on_validation_end(self, trainer, pl_module):
        set_phase("")

    def on_test_start(self, trainer, pl_module):
        set_phase("test")

    def on_test_end(self, trainer, pl_module):
        set_phase("")

    def on_predict_start(self, trainer, pl_module):
        set_phase("prediction")

    def on_predict_end(self, trainer, pl_module):
        set_phase("")
