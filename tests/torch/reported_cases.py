# SPDX-License-Identifier: Apache-2.0
"""The programs of reported/: hangs that people reported, and another form of each. The one table of
what Rollcall must say about each.

Each has a twin, the same program with --fixed, which ends with 0 and without an incident. C++ programs
of this kind: tests/e2e/jobs/test_reported.py.
"""

import contextlib
import dataclasses
import pathlib
import socket
import time
import urllib.request

from expected_verdict import Expected
from hang_cases import BUILD, HERE
from processes import free_port
from program_runs import PYTHON_PATH, ProgramRun, culprit_lines, file_of

FOLDER = HERE / "reported"
HANG_AFTER = "8s"
IDLE_SECONDS = 20


@dataclasses.dataclass(frozen=True)
class Case(Expected):
    at: str = "line"  # "" where the culprits have no place: they have ended, or all have another one
    env: dict = dataclasses.field(default_factory=dict)
    beside: object = None  # (Run) -> what happens outside of the job meanwhile
    own_processes: bool = False  # started and not forked: what it is about comes before NCCL
    told: tuple = ()  # (rank, the number of ranks in its environment), without --fixed
    folder: pathlib.Path = FOLDER

    @property
    def file(self):
        return file_of(self.folder, self.program)

    @property
    def lines(self):
        return culprit_lines(self.folder, self.program)


def ask_server(run):
    """A client of the first rank: some requests, then none for long, then the last ones."""
    address = pathlib.Path(run.work, "port")
    while not address.exists():
        time.sleep(0.1)
    with contextlib.suppress(OSError):  # the job may have been ended
        for pause, path in ((0, "/"), (0, "/"), (0, "/"), (IDLE_SECONDS, "/"), (0, "/stop")):
            time.sleep(pause)
            urllib.request.urlopen(f"http://127.0.0.1:{address.read_text()}{path}", timeout=120).close()


def serve_slowly(run):
    """A server with as many pieces as its only client asks for, five of 16 KiB a second."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(60)
        unfinished = pathlib.Path(run.work, "port.new")
        unfinished.write_text(str(server.getsockname()[1]))
        unfinished.rename(pathlib.Path(run.work, "port"))
        with contextlib.suppress(OSError):  # the job may have been ended
            client = server.accept()[0]
            with client:
                for _ in range(int(client.recv(16))):
                    client.sendall(bytes(16384))
                    time.sleep(0.2)


def start_processes(case, fixed):
    """What starts the ranks of a program as processes of their own, in the place of torchrun."""
    rank, world = case.told if case.told and not fixed else (-1, 0)
    told = f'[ "$RANK" != {rank} ] || export WORLD_SIZE={world}; exec "$@"'
    return [str(BUILD / "tests" / "ranks"), "-n", str(case.ranks), "--keep-going", "--",
            "bash", "-c", told, "bash"]


class ReportedRun(ProgramRun):
    """A program of such a table under `rollcall run`."""

    def __init__(self, server, python, case, work, fixed=False, hang_after=HANG_AFTER):
        env = dict(case.env)
        if case.own_processes:
            launcher = [*start_processes(case, fixed), python]
            env.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(free_port()), PYTHONPATH=PYTHON_PATH,
                       OMP_NUM_THREADS="1")
        else:
            launcher = server.launcher(case.ranks)
        super().__init__(launcher, case.file, case.program, work, ranks=case.ranks, fixed=fixed,
                         hang_after=hang_after, env=env)


STAGES = [
    Case("stages.no_experts", ("init_incomplete", "missing_rank"), (0,), ("skipped-call",)),
    Case("stages.no_words_to_share", ("init_incomplete", "missing_rank"), (1,), ("skipped-call",)),
    Case("stages.no_experts_later", ("missing_rank", "deadlock"), (0,), ("skipped-call",)),
    Case("stages.last_stage_logs_nothing", ("missing_rank", "deadlock"), (2,), ("skipped-call",), ranks=3),
]
THREADS = [
    Case("threads.saves_beside_training", ("concurrent_use", "operation_mismatch"), (0, 1, 2, 3),
         ("one-thread-per-communicator",), most="likely", at="", never=("extra call", "skipped")),
    Case("threads.gathers_beside_training", ("concurrent_use", "operation_mismatch"), (0, 1, 2),
         ("one-thread-per-communicator",), ranks=3, most="likely", at="", never=("extra call", "skipped"),
         says=(r"threads\.py:\d+.*threads\.py:\d+",)),
]
SERVERS = [
    Case("servers.idle_server", ("", "missing_rank"), (0,), most="likely", says=("idle|request",), seconds=0,
         beside=ask_server),
    Case("servers.idle_asyncio_server", ("", "missing_rank"), (0,), ranks=2, most="likely",
         says=("idle|request",), seconds=0, beside=ask_server),
    Case("servers.checks_health", ("missing_rank",), (0,), ("mixed-backends",), says=(r"rank 3\b",),
         never=("Download", "remote server")),
    Case("servers.asks_for_one_more", ("missing_rank",), (2,), ("mixed-backends",), ranks=3,
         says=(r"rank 0\b",), never=("remote server",)),
]
STEPS = [
    Case("steps.batch_without_images", ("argument_mismatch",), (2,), ("skipped-call",), divergence="skipped"),
    Case("steps.samples_without_labels", ("operation_mismatch", "argument_mismatch"), (1,), ("skipped-call",),
         ranks=3, divergence="skipped"),
    Case("steps.fetches_once_more", ("operation_mismatch",), (1,), ("extra-call",),
         never=("left the training loop",)),
    Case("steps.measures_again", ("operation_mismatch", "argument_mismatch"), (2,), ("extra-call",), ranks=3,
         never=("left the training loop",)),
    Case("steps.no_room", ("unmatched_p2p",), (1,), ("skipped-call", "mixed-backends"),
         never=("left the training loop", "thread of its own")),
    Case("steps.prompt_is_cached", ("missing_rank",), (2,), ("skipped-call", "mixed-backends"), ranks=3,
         never=("left the training loop", "thread of its own")),
    Case("steps.accumulates_longer", ("missing_rank",), (3,), ("skipped-call", "uneven-inputs", "mixed-backends"),
         never=("thread of its own",), seconds=25),
]
LEFT = ("teardown_hang", "missing_rank", "rank_exited")
HANDLERS = [
    Case("handlers.destroys_in_finally", LEFT, (2,), says=(r"ValueError: the loss", r"handlers\.py:\d+"),
         advises="exception", never=("left after", "left the training loop", "exited"),
         env={"ROLLCALL_SIM_DESTROY": "collective"}),
    Case("handlers.joins_on_its_way_out", LEFT, (1,), ranks=3, says=(r"KeyError", r"handlers\.py:\d+"),
         advises="exception", never=("left after", "exited")),
    Case("handlers.thread_keeps_it", LEFT, (2,), at="",
         says=(r"ValueError: the loss", r"handlers\.py:\d+", "send_files"), never=("torchrun does",)),
]
CHILDREN = [
    Case("children.pool_works", ("", "missing_rank"), (0,), ("late-rank", "waits-for-a-child"), most="likely",
         says=(r"process(es)? \d+", r"\bwork"), never=("another thread of its own",), seconds=0),
    Case("children.builds_alone", ("", "missing_rank"), (1,), ("late-rank", "waits-for-a-child"), ranks=3,
         most="likely", says=(r"process(es)? \d+", r"\bwork"), never=("another thread of its own",), seconds=0),
    Case("children.downloads_weights", ("", "missing_rank"), (2,), ("late-rank", "downloads-alone"), most="likely",
         says=("receives",), seconds=0, beside=serve_slowly),
]
ODD_BATCH = ("skipped-call", "issue-the-other-end", "pipeline-out-of-step")
EXCHANGES = [
    Case("exchanges.settled_ranks_send_nothing", ("unmatched_p2p",), (1, 3),
         ODD_BATCH, says=("[Ss]end",), never=("Break the cycle",)),
    Case("exchanges.frozen_border_receives_nothing", ("unmatched_p2p",), (2,),
         ODD_BATCH, ranks=3, says=("Recv|receive",), never=("Break the cycle",)),
    Case("exchanges.all_send_first", ("deadlock",), (0, 1, 2, 3), ("all-send-first",), own_processes=True,
         never=("never joined", "unknown process", "No agent reports")),
    Case("exchanges.all_receive_first", ("deadlock",), (0, 1, 2), ("all-send-first", "break-the-cycle"),
         ranks=3, own_processes=True, never=("never joined", "unknown process", "No agent reports")),
]
STORES = ("init_incomplete", "missing_rank", "standstill")
WORLDS = [
    Case("worlds.first_counts_five", STORES, (0,), ("launch-count",), most="likely", says=(r"\b5\b",),
         own_processes=True, told=(0, 5)),
    Case("worlds.first_expects_four", STORES, (0,), ranks=3, most="likely", own_processes=True),
    Case("worlds.third_counts_five", ("init_incomplete", "nccl_error", "rank_exited", "rank_died"), (2,),
         says=(r"rank 2 \(\S+, pid \d+\)", "invalid usage|refused", r"\b5\b"), at="",
         never=(r"rank 4\b", "exited normally"), own_processes=True, told=(2, 5)),
]
CASES = [*STAGES, *THREADS, *SERVERS, *STEPS, *HANDLERS, *CHILDREN, *EXCHANGES, *WORLDS]
