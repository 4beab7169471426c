# SPDX-License-Identifier: Apache-2.0
"""Lightning and Hugging Face Trainer with the callbacks of the Python package rollcall."""

import rollcall.lightning
import rollcall.transformers
import with_lightning
import with_trainer
from common import answer_that_never_comes, main, program


class StuckInValidation(with_lightning.Regression):
    def validation_step(self, batch, number):
        if self.trainer.global_rank == 1 and not self.fixed:
            answer_that_never_comes().get()  # hangs: lightning_validates
        self.log("loss", super().validation_step(batch, number), sync_dist=True)


@program
def lightning_validates(args):
    """Rank 1 is stuck in the validation after the first epoch."""
    with_lightning.fit(StuckInValidation(args.fixed), args,
                       callbacks=[rollcall.lightning.RollcallCallback()])


class StuckSamples(with_trainer.Samples):
    def __init__(self, stuck):
        super().__init__(101)
        self.stuck = stuck

    def __getitem__(self, index):
        if self.stuck and index > 50:
            answer_that_never_comes().get()  # hangs: trainer_evaluates
        return super().__getitem__(index)


@program
def trainer_evaluates(args):
    """Rank 1 is stuck in its data for an evaluation after four steps."""
    trainer = with_trainer.make_trainer(args, [rollcall.transformers.RollcallCallback()],
                                        eval_strategy="steps", eval_steps=4)
    trainer.eval_dataset = StuckSamples(args.rank == 1 and not args.fixed)
    trainer.train()


if __name__ == "__main__":
    main()
