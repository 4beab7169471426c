# SPDX-License-Identifier: Apache-2.0
"""Workers of an inference engine, as vLLM and SGLang arrange them: one scheduler gives requests to
tensor-parallel workers through a group of its own, and the workers exchange activations."""

import ctypes
import time

import torch
import torch.distributed as dist
from common import WIDTH, answer_that_never_comes, main, program

STOP = "stop"


def name_process(name):
    """As setproctitle shows it in `ps`; 15 letters."""
    ctypes.CDLL(None).prctl(15, name.encode()[:15], 0, 0, 0)


class Worker:
    def __init__(self, args):
        self.args = args
        name_process(f"VLLM::Worker_TP{args.rank}")
        self.requests = dist.new_group(backend="gloo")
        self.weights = torch.ones(WIDTH, WIDTH)

    def execute_model(self, size):
        hidden = torch.ones(size, WIDTH) @ self.weights
        dist.all_reduce(hidden)
        return hidden

    def receive(self, request):
        """The scheduler's next request, given to all; they are idle until it comes."""
        message = [request]
        dist.broadcast_object_list(message, src=0, group=self.requests)
        return message[0]

    def serve(self, requests, fails_at=None):
        for request in requests:
            request = self.receive(request if self.args.rank == 0 else None)
            if request == STOP:
                return
            if request == fails_at:
                raise_in_kernel()
            self.execute_model(request)


def raise_in_kernel():
    raise RuntimeError("CUDA error: an illegal memory access was encountered")


@program
def worker_left_its_loop(args):
    """Rank 2's worker catches an error, leaves its loop and waits to be told to end."""
    worker = Worker(args)
    try:
        worker.serve([4, 8, 4, 3, 4], 3 if args.rank == 2 and not args.fixed else None)
    except RuntimeError as error:
        print(f"worker {args.rank} stops: {error}", flush=True)
        answer_that_never_comes().get()  # hangs: worker_left_its_loop


@program
def healthy_idle(args):
    """Healthy: no request comes for longer than the limit; then one comes."""

    def requests():
        yield from (4, 8)
        time.sleep(20 if args.rank == 0 else 0)
        yield 16

    Worker(args).serve(requests())


if __name__ == "__main__":
    main()
