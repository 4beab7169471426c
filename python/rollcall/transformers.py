# SPDX-License-Identifier: Apache-2.0
"""Tells Rollcall the step and the phase of a Hugging Face Trainer.

    trainer = transformers.Trainer(callbacks=[rollcall.transformers.RollcallCallback()], ...)

Needs `import rollcall.transformers`. Costs one branch where the library is not preloaded. The phase
"evaluation" begins with the first batch of an evaluation: Trainer calls nothing before.
"""

from transformers import TrainerCallback

from rollcall import set_phase, set_step


class RollcallCallback(TrainerCallback):
    def on_step_begin(self, args, state, control, **kwargs):
        set_phase("")
        set_step(state.global_step)

    def on_prediction_step(self, args, state, control, **kwargs):
        set_phase("evaluation")

    def on_evaluate(self, args, state, control, **kwargs):
        set_phase("")

    def on_predict(self, args, state, control, metrics, **kwargs):
        set_phase("")
