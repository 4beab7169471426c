# SPDX-License-Identifier: Apache-2.0
"""The programs of frameworks/: the one table of what Rollcall must say about each, on the simulated NCCL and on gloo.

Each hang has a twin, the same program with --fixed, which ends with 0 and without an incident.
"""

import dataclasses

from hang_cases import HERE
from program_runs import PYTHON, ProgramRun, ProgramServer, culprit_lines, file_of

FOLDER = HERE / "frameworks"


@dataclasses.dataclass(frozen=True)
class Case:
    program: str  # file and function
    cause: str
    culprits: tuple
    advice: tuple  # the pieces of which one must come first
    ranks: int = 4
    at: str = "line"  # "" where the culprit has no place: it has ended
    defect: str = ""  # what is wrong today, in the verdict or the first advice; not asserted
    misadvised: str = ""  # why the first advice does not fit today; the verdict does
    backend: str = "nccl_cpu"

    @property
    def name(self):
        return name_on(self.program, self.backend)

    @property
    def lines(self):
        return culprit_lines(FOLDER, self.program)


def name_on(program, backend):
    """The name of a test of the program."""
    return program if backend == "nccl_cpu" else f"{program}-{backend}"


def lacks_packages(program):
    """Whether the program wants a framework that is not installed."""
    wanted = ("with_accelerate", "with_callbacks", "with_trainer", "with_megatron", "with_ray",
              "with_torchft")
    return program.startswith(wanted) and not PYTHON.exists()


def starts_its_ranks(program):
    """Whether the program has a launcher of its own, which launch.py cannot take the place of."""
    return program.startswith("with_ray")


class Server(ProgramServer):
    """The process from which all ranks of these programs are forked."""

    def __init__(self, scratch, programs):
        super().__init__(scratch, {file_of(FOLDER, program) for program in programs})


class FrameworkRun(ProgramRun):
    """A program of frameworks/ under `rollcall run`, whose ranks the server starts."""

    def __init__(self, server, program, work, ranks=4, fixed=False, hang_after="5s", backend="nccl_cpu"):
        own = starts_its_ranks(program)
        super().__init__([str(PYTHON)] if own else server.launcher(ranks), file_of(FOLDER, program),
                         program, work, ranks=ranks, fixed=fixed, hang_after=hang_after, backend=backend,
                         env={"PROGRAM_BACKEND": backend})
        self.command += ["--ranks", str(ranks)] if own else []


LOOPS = [
    Case("loops.swallowed_error", "argument_mismatch", (1,), ("skipped-call", "uneven-inputs")),
    Case("loops.continue_on_nan", "argument_mismatch", (2,), ("skipped-call", "uneven-inputs")),
    Case("loops.early_stopping", "argument_mismatch", (3,), ("uneven-inputs",)),
    Case("loops.out_of_memory", "rank_died", (3,), ("killed",), at=""),
    Case("loops.stalled_worker", "missing_rank", (1,), ("data-loader",)),
    Case("loops.stuck_in_compile", "missing_rank", (2,), ("compiles-alone",)),
    Case("loops.slow_download", "missing_rank", (1,), ("downloads-alone",)),
    Case("loops.breakpoint_left", "missing_rank", (0,), ("debugger-prompt",)),
    Case("loops.upload_waits", "missing_rank", (0,),
         ("waits-for-a-thread", "look-at-absent-rank")),
    Case("loops.collective_in_log", "argument_mismatch", (0,),
         ("logs-alone", "collective-on-one-rank", "extra-call")),
]
FSDP2 = [
    Case("fsdp2.full_tensor_in_log", "argument_mismatch", (0,),
         ("logs-alone", "collective-on-one-rank", "extra-call")),
    Case("fsdp2.clips_alone", "operation_mismatch", (2,),
         ("clips-alone", "extra-call")),
    Case("fsdp2.saves_on_rank0", "operation_mismatch", (0,), ("rank0-only-checkpoint",)),
    Case("fsdp2.validates_on_rank0", "argument_mismatch", (0,), ("validates-alone", "extra-call")),
    Case("fsdp2.skips_backward", "argument_mismatch", (1,), ("skipped-call",)),
]
TENSOR_PARALLEL = [
    Case("tensor_parallel.logs_a_weight", "operation_mismatch", (0,), ("logs-alone", "extra-call")),
    Case("tensor_parallel.distributes_alone", "unmatched_p2p", (0,), ("extra-call",)),
    Case("tensor_parallel.other_length", "argument_mismatch", (2,),
         ("same-arguments-everywhere", "uneven-inputs")),
    Case("tensor_parallel.skips_on_one_rank", "missing_rank", (3,),
         ("skipped-call", "uneven-inputs")),
]
PIPELINES = [
    Case("pipelines.first_stage_has_no_data", "unmatched_p2p", (0,),
         ("waits-for-a-thread", "data-loader", "look-at-absent-rank")),
    Case("pipelines.other_microbatches", "unmatched_p2p", (2,), ("pipeline-out-of-step",)),
    Case("pipelines.one_stage_stops_early", "unmatched_p2p", (3,),
         ("pipeline-out-of-step", "uneven-inputs")),
    Case("pipelines.stage_fails", "rank_exited", (1,), ("raised-an-exception",), at=""),
]
CHECKPOINTS = [
    Case("checkpoints.dcp_on_rank0", "operation_mismatch", (0,),
         ("rank0-only-checkpoint", "extra-call")),
    Case("checkpoints.writer_waits", "missing_rank", (2,), ("saves-alone", "waits-for-a-thread")),
    Case("checkpoints.load_fails_on_one", "operation_mismatch", (3,), ("skipped-call",)),
]
OBJECTS = [
    Case("objects.other_source", "argument_mismatch", (3,), ("root-differs",)),
    Case("objects.nothing_to_gather", "operation_mismatch", (1,), ("skipped-call",)),
    Case("objects.reports_its_error", "operation_mismatch", (2,), ("extra-call", "handles-an-exception")),
    Case("objects.new_group_on_some", "init_incomplete", (2, 3),
         ("split-on-all-ranks", "mixed-backends")),
    Case("objects.rank_in_no_group", "missing_rank", (2,),
         ("waits-for-a-thread", "init-order", "look-at-who-has-not-joined")),
    Case("objects.computes_on_rank0", "argument_mismatch", (0,),
         ("metric-on-some-ranks",)),
    Case("objects.other_metric", "argument_mismatch", (2,), ("metric-on-some-ranks", "extra-call")),
]
ACCELERATE = [
    Case("with_accelerate.waits_on_main_process", "argument_mismatch", (0,), ("extra-call",)),
    Case("with_accelerate.gathers_on_main_process", "operation_mismatch", (0,), ("extra-call",)),
    Case("with_accelerate.breaks_alone", "argument_mismatch", (2,), ("uneven-inputs",)),
    Case("with_accelerate.uneven_gather", "argument_mismatch", (3,), ("uneven-inputs",)),
]
TRAINER = [
    Case("with_trainer.evaluates_on_rank0", "operation_mismatch", (0,),
         ("validates-alone", "extra-call", "buffer-broadcast")),
    Case("with_trainer.stops_alone", "operation_mismatch", (1,), ("uneven-inputs",)),
    Case("with_trainer.waits_in_training_step", "missing_rank", (3,),
         ("waits-for-a-thread", "look-at-absent-rank")),
]
LIGHTNING = [
    Case("with_lightning.logs_on_rank_zero", "argument_mismatch", (0,),
         ("metric-on-some-ranks", "logs-alone")),
    Case("with_lightning.saves_on_rank_zero", "operation_mismatch", (0,),
         ("rank0-only-checkpoint", "extra-call")),
    Case("with_lightning.stops_alone_in_lightning", "operation_mismatch", (2,),
         ("uneven-inputs",)),
]
DEEPSPEED = [
    Case("with_deepspeed.skips_an_expert", "operation_mismatch", (1,), ("skipped-call",)),
    Case("with_deepspeed.gathers_on_rank0", "argument_mismatch", (0,), ("extra-call",)),
    Case("with_deepspeed.zero_saves_on_rank0", "operation_mismatch", (0,),
         ("rank0-only-checkpoint", "extra-call")),
    Case("with_deepspeed.stage_without_data", "unmatched_p2p", (3,),
         ("waits-for-a-thread", "data-loader", "look-at-absent-rank")),
]
MEGATRON = [
    Case("with_megatron.drops_bad_labels", "missing_rank", (3,),
         ("skipped-call", "uneven-inputs")),
    Case("with_megatron.reduces_over_wrong_group", "argument_mismatch", (1,),
         ("extra-call", "communicators-in-one-order")),
    Case("with_megatron.megatron_waits_for_data", "unmatched_p2p", (0,),
         ("waits-for-a-thread", "data-loader", "look-at-absent-rank")),
]
RAY = [
    Case("with_ray.reports_on_rank0", "missing_rank", (0,),
         ("collective-on-one-rank", "look-at-absent-rank")),
    Case("with_ray.waits_for_an_actor", "missing_rank", (1,),
         ("waits-for-a-thread", "look-at-absent-rank")),
    Case("with_ray.skips_bad_batches", "missing_rank", (3,), ("skipped-call", "uneven-inputs"),
         defect="nothing tells a worker that skipped a batch and waits in Ray's report()"),
]
# torchft starts each replica as a job of one rank, so that all of them have RANK=0 of WORLD_SIZE=1.
TORCHFT = [
    Case("with_torchft.replica_without_data", "missing_rank", (2,),
         ("waits-for-a-thread", "data-loader", "look-at-absent-rank")),
    Case("with_torchft.averages_on_first_replica", "argument_mismatch", (0,),
         ("logs-alone", "collective-on-one-rank", "extra-call")),
]
TITAN = [
    Case("titan.logs_on_rank0", "operation_mismatch", (0,),
         ("logs-alone", "collective-on-one-rank", "extra-call")),
    Case("titan.loader_ends_early", "missing_rank", (3,), ("uneven-inputs",)),
    Case("titan.stages_a_checkpoint", "missing_rank", (1,),
         ("waits-for-a-thread", "saves-alone")),
]
ENGINES = [
    Case("engine.worker_left_its_loop", "missing_rank", (2,), ("engine-worker-stopped",)),
]

ON_NCCL = [*LOOPS, *FSDP2, *TENSOR_PARALLEL, *PIPELINES, *CHECKPOINTS, *OBJECTS,
         *ACCELERATE, *TRAINER, *LIGHTNING, *DEEPSPEED, *MEGATRON,
         *RAY, *TORCHFT, *TITAN, *ENGINES]
# What differs on gloo. A barrier is a call of its own, and not an AllReduce; so is a scatter, and not messages.
OTHER_CALL = {"cause": "operation_mismatch"}
# gloo ends a job whose lengths differ, before there are stacks.
ENDS_AT_ONCE = {"at": "", "advice": ("uneven-inputs",)}
NO_STACKS = {"at": ""}  # on a fast machine
# The rank waits in a call of all, which have had a communicator from the start: so all wait for each other.
LEFT_ITS_STEPS = {"cause": "deadlock", "advice": ("communicators-in-one-order", "skipped-call", "uneven-inputs")}
ON_GLOO = {
    "loops.swallowed_error": NO_STACKS,
    "loops.continue_on_nan": OTHER_CALL,
    "loops.early_stopping": OTHER_CALL,
    "loops.collective_in_log": {"at": "", "misadvised": "without stacks, the advice is that of gradients"},
    "fsdp2.full_tensor_in_log": ENDS_AT_ONCE,
    "fsdp2.validates_on_rank0": {"at": "", "misadvised": "without stacks, the advice is that of all arguments"},
    "fsdp2.skips_backward": ENDS_AT_ONCE,
    "tensor_parallel.distributes_alone": OTHER_CALL,
    "tensor_parallel.other_length": NO_STACKS,
    "tensor_parallel.skips_on_one_rank": LEFT_ITS_STEPS,
    "checkpoints.load_fails_on_one": {"advice": ("skipped-call", "same-calls-everywhere")},
    "objects.other_source": NO_STACKS,
    "objects.computes_on_rank0": OTHER_CALL,
    "objects.other_metric": OTHER_CALL,
    "with_accelerate.waits_on_main_process": OTHER_CALL,
    "with_accelerate.breaks_alone": OTHER_CALL,
    "with_accelerate.uneven_gather": NO_STACKS,
    "with_lightning.logs_on_rank_zero": OTHER_CALL,
    "with_deepspeed.gathers_on_rank0": ENDS_AT_ONCE,
    "with_megatron.reduces_over_wrong_group": {"at": ""},
    "with_ray.skips_bad_batches": {"defect": ""},
    "with_torchft.averages_on_first_replica": {"at": "", "advice": ("uneven-inputs", "gradients-differ")},
    "titan.loader_ends_early": {"advice": ("skipped-call", "uneven-inputs")},
}
CASES = [*ON_NCCL, *(dataclasses.replace(case, backend="gloo", **ON_GLOO.get(case.program, {})) for case in ON_NCCL)]
# Ordinary programs that look like hangs for a while.
HEALTHY = [
    "loops.healthy_slow_rank", "loops.healthy_join", "fsdp2.healthy_accumulation",
    "tensor_parallel.healthy_sequence_parallel", "pipelines.healthy_slow_stage",
    "checkpoints.healthy_slow_save", "objects.healthy_objects",
    "titan.healthy_titan", "engine.healthy_idle",
    "with_accelerate.healthy_main_process_first",
    "with_trainer.healthy_evaluation", "with_lightning.healthy_epochs",
    "with_deepspeed.healthy_stages", "with_deepspeed.healthy_zero",
    "with_megatron.healthy_parallel", "with_megatron.healthy_pipeline",
    "with_ray.healthy_ray", "with_torchft.healthy_replicas_come_and_go",
    "with_torchft.healthy_replica_dies",
]
# torchft's handler of gloo's error fails where a replica dies, also without Rollcall.
FAILS_ON_GLOO = {"with_torchft.healthy_replica_dies"}
