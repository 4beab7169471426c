# SPDX-License-Identifier: Apache-2.0
"""The hangs of tests/torch/, the way to cause each, and the expected verdict.

One table for the tests, the measurements and the tutorial. Each script is run as
its author would: torchrun --nproc-per-node N SCRIPT; Rollcall is only around it. A run without
Rollcall, for a result to compare with, may fork its ranks instead.
"""

import contextlib
import dataclasses
import fcntl
import os
import pathlib
import re
import sys
import threading
import time

from watched_job import WatchedJob

HERE = pathlib.Path(__file__).parent
BUILD = pathlib.Path(os.environ.get("ROLLCALL_BUILD", HERE.parent.parent / "build" / "release"))
LIMIT_SECONDS = 240
# On a machine with a GPU, "nccl": the real NCCL, with all ranks on the first GPU. "gloo": no NCCL, not even a
# simulated one, for programs that choose gloo themselves.
BACKEND = os.environ.get("ROLLCALL_TORCH_BACKEND", "nccl_cpu")
# What lets several ranks share it: a host of its own for each, as far as NCCL knows, and
# sockets between them; from NCCL 2.30 on there is a switch.
ONE_GPU = {
    "CUDA_VISIBLE_DEVICES": "0", "NCCL_MULTI_RANK_GPU_ENABLE": "1", "NCCL_NET": "Socket",
    "NCCL_SOCKET_IFNAME": "lo", "NCCL_IB_DISABLE": "1", "NCCL_P2P_DISABLE": "1",
    "NCCL_SHM_DISABLE": "1", "NCCL_NVLS_ENABLE": "0", "NCCL_MAX_CTAS": "1",
}
WITH_OWN_HOST_ID = ["bash", "-c", 'NCCL_HOSTID=rank$RANK exec "$0" "$@"']


def last(ranks):
    return ranks - 1


def middle(ranks):
    return ranks // 2


def first(ranks):
    return 0


@dataclasses.dataclass
class Hang:
    name: str
    script: str
    cause: str
    culprit: object  # (number of ranks) -> the guilty rank
    advice: str  # must be among those given
    at: str  # function of the script in which the culprit stands, or its exception's text
    waiting_at: str  # likewise of those that wait; empty if nothing shows it
    operation: str = ""  # what the others called
    flags: tuple = ()  # of the script; {work} is a folder of the run
    fixed_flags: tuple = ()  # with --fixed
    upset: object = None  # (Run) -> context manager: what befalls the job from outside


class Run(WatchedJob):
    """A job under `rollcall run`, in a folder of its own."""

    def __init__(self, hang, work, ranks=4, fixed=False, hang_after="5s", on_hang="abort",
                 rollcall=True, env=None, forks=None, backend=BACKEND):
        """forks: a ForkServer that starts the ranks in the place of torchrun."""
        super().__init__(work)
        self.hang, self.ranks = hang, ranks
        flags = ["--fixed", *hang.flags, *hang.fixed_flags] if fixed else hang.flags
        script = [str(HERE / hang.script), *(flag.format(work=self.work) for flag in flags)]
        real = backend == "nccl"
        if real:
            script = ["--no-python", *WITH_OWN_HOST_ID, sys.executable, *script]
        torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone",
                    "--nproc-per-node", str(ranks)]
        self.job = [*(torchrun if forks is None else forks.launcher(ranks)), *script, "--backend", backend]
        self.command = self.job
        if rollcall:
            self.command = [str(BUILD / "bin" / "rollcall"), "run", *(["--sim"] if backend == "nccl_cpu" else []),
                            f"--hang-after={hang_after}", f"--on-hang={on_hang}",
                            f"--report-dir={self.reports}", "--", *self.job]
        self.env = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
        self.env.update(ONE_GPU if real else {})
        if forks is not None:
            self.env["OMP_NUM_THREADS"] = "1"  # as torchrun sets it
        self.env.update(env or {})

    def upset(self):
        return self.hang.upset(self) if self.hang.upset else super().upset()

    def go(self, limit=LIMIT_SECONDS):
        return super().go(limit)

    def find_pid(self, rank):
        """The process of this rank; None if it does not exist (yet)."""
        for entry in pathlib.Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            try:
                command = (entry / "cmdline").read_bytes().decode().split("\0")
                environment = (entry / "environ").read_bytes().decode().split("\0")
            except OSError:
                continue
            if (str(HERE / self.hang.script) in command and f"RANK={rank}" in environment
                    and any(str(self.work) in part for part in command)):
                return int(entry.name)
        return None

    def wait_for_nccl(self, ranks, limit=LIMIT_SECONDS):
        """Until these ranks have made NCCL calls: the library keeps a segment for each."""
        pids = {rank: self.find_pid(rank) for rank in ranks}
        folder = pathlib.Path(f"/dev/shm/rollcall-{os.geteuid()}")
        deadline = time.monotonic() + limit
        while not all(list(folder.glob(f"*/{pid}-*.seg")) for pid in pids.values()):
            if time.monotonic() > deadline:
                raise TimeoutError(f"not all of {pids} came to NCCL\n{self.output[-3000:]}")
            time.sleep(0.05)

    def wait_for(self, pattern, count=1, limit=LIMIT_SECONDS):
        """Until the job has printed that so many times."""
        deadline = time.monotonic() + limit
        while len(re.findall(pattern, self.output)) < count:
            if time.monotonic() > deadline:
                raise TimeoutError(f"{pattern!r} was not printed\n{self.output[-3000:]}")
            time.sleep(0.05)


@contextlib.contextmanager
def a_lock_that_nobody_releases(run):
    """On the model cache of the middle rank, as a process that was killed leaves one on NFS."""
    cache = run.work / "cache" / f"rank{middle(run.ranks)}"
    cache.mkdir(parents=True)
    with open(cache / "weights.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield lock


@contextlib.contextmanager
def meanwhile(action, run):
    """action(run) in a thread beside the job."""
    thread = threading.Thread(target=action, args=(run,))
    thread.start()
    try:
        yield
    finally:
        thread.join()


HANGS = [
    Hang("rank0-only-setup", "rank0-only-setup/train.py", "operation_mismatch", first,
         "rank0-only-setup", "load_dataset", "main", "AllGather",
         flags=("--data", "{work}/data.pt")),
    Hang("rank0-only-setup: launch() in a constructor", "rank0-only-setup/launch_in_constructor.py",
         "init_incomplete", first, "init-order", "download", "__init__",
         flags=("--data", "{work}/data.pt"), fixed_flags=("--download-seconds", "0.1")),
    Hang("rank0-only-setup: shapes differ", "rank0-only-setup/shapes_differ.py", "rank_exited",
         last, "rank0-only-setup", "RuntimeError: ", "main", "Broadcast"),
    Hang("init-order", "init-order/train.py", "init_incomplete", middle, "init-order",
         "load_weights", "main", flags=("--cache", "{work}/cache"),
         upset=a_lock_that_nobody_releases),
    Hang("uneven-inputs", "uneven-inputs/train.py", "rank_exited", last, "uneven-inputs", "",
         "train_epoch", "AllReduce"),
    Hang("uneven-inputs: dropped batch", "uneven-inputs/dropped_batch.py", "argument_mismatch",
         last, "uneven-inputs", "main", "train_epoch", "AllReduce"),
    Hang("uneven-inputs: last batch", "uneven-inputs/last_batch.py", "argument_mismatch", last,
         "uneven-inputs", "gather", "gather", "AllGather"),
    Hang("buffer-broadcast", "buffer-broadcast/train.py", "operation_mismatch", first,
         "buffer-broadcast", "validate", "train_epoch", "AllReduce"),
    Hang("rank0-only-checkpoint", "rank0-only-checkpoint/train.py", "operation_mismatch", first,
         "rank0-only-checkpoint", "full_state", "save", "AllReduce",
         flags=("--checkpoint", "{work}/checkpoint.pt")),
    Hang("rank0-only-checkpoint: FSDP1", "rank0-only-checkpoint/fsdp1.py", "operation_mismatch",
         first, "rank0-only-checkpoint", "save", "save", "AllReduce",
         flags=("--checkpoint", "{work}/checkpoint.pt")),
    Hang("rank0-only-checkpoint: Fabric", "rank0-only-checkpoint/fabric.py", "operation_mismatch",
         first, "rank0-only-checkpoint", "main", "main", "AllReduce",
         flags=("--checkpoint", "{work}/checkpoint")),
]

# The same on gloo, where a barrier is not an AllReduce and a rank that has left breaks the others'
# connections: they end with exceptions, and Rollcall says why.
ON_GLOO = [dataclasses.replace(hang, **{
    "uneven-inputs: dropped batch": {"cause": "operation_mismatch"},
    # gloo ends the job at once, so no stack is taken.
    "uneven-inputs": {"at": "", "waiting_at": ""},
    "uneven-inputs: last batch": {"at": "", "waiting_at": ""},
    "rank0-only-checkpoint": {"operation": "Barrier"},
    "rank0-only-checkpoint: FSDP1": {"operation": "Barrier"},
    "rank0-only-checkpoint: Fabric": {"operation": "Barrier"},
}.get(hang.name, {})) for hang in HANGS]


def by_name(name):
    return next(hang for hang in HANGS if hang.name == name)
