# SPDX-License-Identifier: Apache-2.0
"""torchft: replicas that come and go, and a lighthouse that tells each step who takes part.

Each rank of launch.py is a replica group of one rank, as torchft's launchers start them: all of
them have RANK=0, and the rank in the communicator comes from the quorum. Replica 0 also runs the
lighthouse.
"""

import contextlib
import os
import signal
import sys
import time
from datetime import timedelta

import torch
import torch.distributed as dist
import torchft
from common import BACKEND, answer_that_never_comes, batches, make_network, parse_arguments, program, run_rank
from torchft.coordination import LighthouseServer
from torchft.futures import context_timeout
from torchft.process_group import ProcessGroupWrapper, _WorkAcceleratorTimeout

mse = torch.nn.functional.mse_loss


class Waiting(_WorkAcceleratorTimeout):
    """torchft's work of NCCL, without the stream that a CPU lacks."""

    @classmethod
    def _stream_timeout(cls, pg, timeout):
        return context_timeout(pg.abort, timeout)

    def get_future(self):
        """Complete at once, as that of ProcessGroupNCCL, whose stream orders what comes after."""
        self.wait()
        future = torch.futures.Future()
        future.set_result(self._work.result())
        return future


class ProcessGroupNcclCpu(ProcessGroupWrapper):
    """torchft's ProcessGroupNCCL, which needs CUDA, over the backend of these tests."""

    error = None

    def _create_pg(self, store, rank, world_size):
        from rollcall_torch_nccl.backend import NcclBackend

        self.error = None
        custom = dist.ProcessGroup.BackendType.CUSTOM
        group = dist.ProcessGroup(store, rank, world_size)
        group._set_default_backend(custom)
        backend = NcclBackend(store, rank, world_size)
        group._register_backend(torch.device("cpu"), custom, backend)
        return group

    def _wrap_work(self, work, opts):
        return Waiting(self, work, self._timeout)

    def abort(self, errored=True):
        self.error = RuntimeError("aborted") if errored else None
        super().abort(errored=errored)

    def errored(self):
        return self.error

    def getBackendName(self):
        return "torchft-nccl-cpu"


def start_lighthouse(args, replicas):
    """The address of the lighthouse, which waits until so many replicas have come."""
    port = os.environ["MASTER_PORT"]
    if args.rank == 0:
        args.lighthouse = LighthouseServer(bind=f"[::]:{port}", min_replicas=replicas,
                                           join_timeout_ms=500, heartbeat_timeout_ms=1000)
    return f"http://127.0.0.1:{port}"


def make_group(timeout):
    kind = torchft.ProcessGroupGloo if BACKEND == "gloo" else ProcessGroupNcclCpu
    return kind(timeout=timeout)


@contextlib.contextmanager
def replica(args, replicas=None, timeout=120):
    """The model and the optimizer of this replica, and the manager of its steps."""
    replicas = args.ranks if replicas is None else replicas
    address = start_lighthouse(args, replicas)
    store = dist.TCPStore("127.0.0.1", 0, is_master=True)
    network = make_network()
    optimizer = torch.optim.SGD(network.parameters(), lr=0.01)
    seconds = timedelta(seconds=timeout)
    manager = torchft.Manager(
        pg=make_group(seconds), min_replica_size=replicas, timeout=seconds,
        quorum_timeout=timedelta(seconds=120), load_state_dict=network.load_state_dict,
        state_dict=network.state_dict, store_addr="127.0.0.1", store_port=store.port,
        lighthouse_addr=address, replica_id=f"replica_{args.rank}", rank=0, world_size=1,
        hostname="127.0.0.1")
    model = torchft.DistributedDataParallel(manager, network)
    yield manager, model, torchft.Optimizer(manager, optimizer)
    manager.shutdown()


def train_step(model, optimizer, inputs, targets):
    optimizer.zero_grad()  # and starts the quorum of this step
    loss = mse(model(inputs), targets)
    loss.backward()
    optimizer.step()
    return loss.detach()


def read_batch(stuck, inputs):
    return answer_that_never_comes().get() if stuck else inputs  # hangs: replica_without_data


@program
def replica_without_data(args):
    """The third replica reads its batch after the quorum, and the reader does not deliver it."""
    with replica(args) as (manager, model, optimizer):
        for number, (inputs, targets) in enumerate(batches(8, args.rank)):
            optimizer.zero_grad()
            stuck = number == 4 and args.rank == 2 and not args.fixed
            mse(model(read_batch(stuck, inputs)), targets).backward()
            optimizer.step()


@program
def averages_on_first_replica(args):
    """The first replica alone averages its loss through the manager, for its log."""
    with replica(args) as (manager, model, optimizer):
        for number, (inputs, targets) in enumerate(batches(8, args.rank)):
            optimizer.zero_grad()
            loss = mse(model(inputs), targets)
            if number == 4 and (args.rank == 0 or args.fixed):
                manager.allreduce(loss.detach()).wait()  # hangs: averages_on_first_replica
            loss.backward()
            optimizer.step()


@program
def healthy_replicas_come_and_go(args):
    """Healthy: the fourth replica comes late and gets the weights; the second leaves early."""
    if args.rank == 3:
        time.sleep(7)
    with replica(args, replicas=2) as (manager, model, optimizer):
        for inputs, targets in batches(1000, args.rank):
            train_step(model, optimizer, inputs, targets)
            if manager.current_step() >= (40 if args.rank == 1 else 60):
                break
            time.sleep(0.25)


@program
def healthy_replica_dies(args):
    """Healthy: the fourth replica is killed in a step; the others abort the step and go on, and
    the replica starts again and gets the weights."""
    dies = False
    if args.rank == 3:  # stays as the replica's launcher, and starts it again as itself
        child = os.fork()
        dies = child == 0
        if not dies:
            os.waitpid(child, 0)
    with replica(args, replicas=2, timeout=3) as (manager, model, optimizer):
        for inputs, targets in batches(1000, args.rank):
            if manager.current_step() == 5 and dies:
                optimizer.zero_grad()
                manager.wait_quorum()
                os.kill(os.getpid(), signal.SIGKILL)
            train_step(model, optimizer, inputs, targets)
            if manager.current_step() >= 40:
                break
            time.sleep(0.25)


def become_replica():
    """Starts this rank again with the environment that torchft's launcher gives a replica group."""
    replica = {"REPLICA_GROUP_ID": os.environ["RANK"], "NUM_REPLICA_GROUPS": os.environ["WORLD_SIZE"],
               "RANK": "0", "WORLD_SIZE": "1", "LOCAL_RANK": "0"}
    os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, **replica})


def main():
    args = parse_arguments()
    if "REPLICA_GROUP_ID" not in os.environ:
        become_replica()
    args.rank = int(os.environ["REPLICA_GROUP_ID"])
    args.ranks = int(os.environ["NUM_REPLICA_GROUPS"])
    run_rank(args)


if __name__ == "__main__":
    main()
