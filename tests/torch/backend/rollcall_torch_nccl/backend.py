# SPDX-License-Identifier: Apache-2.0
"""torch.distributed's backend over NCCL communicators, for CPU tensors.

Made to call NCCL as ProcessGroupNCCL does: the communicator is created at the
first collective or by ncclCommSplit, lists are gathered through one flat tensor,
a barrier is an all-reduce of one element, peers that send outside a batch get a
communicator of their own, and shutdown finalizes every communicator before it
destroys the first.

Every method enqueues and returns its work at once. trampoline.cc calls these
methods by name, for torch's C++.
"""

import zlib

import torch
import torch.distributed as dist
from torch.distributed import distributed_c10d as c10d

from . import nccl
from ._trampoline import PythonBackend
from .communicator import Communicator
from .work import NcclWork, PendingWork

# torch's C++ holds only the C++ half of a backend: this keeps the other one.
_alive = set()


class NcclBackend(PythonBackend):
    def __init__(self, store, rank, size, collective=None):
        super().__init__(rank, size)
        self._store = store
        self._rank = rank
        self._size = size
        self._collective = collective
        self._pairs = {}  # peer -> Communicator of two ranks
        self._batch = None  # the NcclWork parts of a coalesced run, while it is open
        self._launched = 0
        _alive.add(self)

    def name(self):
        return "nccl_cpu"

    def backend_options(self):
        return torch._C._distributed_c10d.Backend.Options("nccl_cpu")

    def sequence_number(self):
        return self._launched

    def connect(self):
        """Makes the communicator now, not at the first call: init_process_group(device_id=)."""
        self._communicator()

    def split(self, store, ranks, name):
        """The group of `ranks` by ncclCommSplit; None on those that are not among them."""
        member = self._rank in ranks
        color = zlib.crc32(repr(ranks).encode()) & 0x7FFFFFFF if member else None
        parent = self._communicator()
        child = parent.split(color, name)
        return NcclBackend(store, ranks.index(self._rank), len(ranks), child) if member else None

    def start_coalescing(self):
        self._batch = []

    def end_coalescing(self):
        batch, self._batch = self._batch, None
        calls = [call for part in batch for call in part.calls]
        return self._launch(
            calls,
            [part.result for part in batch],
            batch,
            lambda: [part.finish() for part in batch if part.finish],
            grouped=True,
        )

    def allreduce(self, tensors, opts=c10d.AllreduceOptions()):
        return self._all_reduce_each(tensors, opts.reduceOp)

    def allreduce_coalesced(self, tensors, opts=c10d.AllreduceCoalescedOptions()):
        return self._all_reduce_each(tensors, opts.reduceOp)

    def barrier(self, opts=c10d.BarrierOptions()):
        return self._all_reduce_each([torch.zeros(1)], dist.ReduceOp.SUM)

    def broadcast(self, tensors, opts=c10d.BroadcastOptions()):
        (flat,) = _flat(tensors)
        return self._launch([("broadcast", flat, flat, opts.rootRank)], tensors)

    def reduce(self, tensors, opts=c10d.ReduceOptions()):
        (flat,) = _flat(tensors)
        return self._launch([("reduce", flat, flat, opts.reduceOp, opts.rootRank)], tensors)

    def allgather(self, output_lists, inputs, opts=c10d.AllgatherOptions()):
        (outputs,), (tensor,) = output_lists, inputs
        if any(output.shape != tensor.shape for output in outputs):
            return self._all_gather_uneven(outputs, tensor)
        gathered = tensor.new_empty((self._size, *tensor.shape))
        return self._all_gather_each(
            [gathered], [tensor], outputs, lambda: _copy_each(outputs, gathered)
        )

    def all_gather_single(self, output, tensor, opts=c10d.AllgatherOptions()):
        return self._all_gather_each([output], [tensor], [output])

    def all_gather_single_coalesced(self, outputs, inputs, opts=c10d.AllgatherOptions()):
        return self._all_gather_each(outputs, inputs, outputs)

    def reduce_scatter(self, outputs, input_lists, opts=c10d.ReduceScatterOptions()):
        (output,), (inputs,) = outputs, input_lists
        if any(tensor.shape != output.shape for tensor in inputs):
            return self._reduce_scatter_uneven(output, inputs, opts.reduceOp)
        return self._reduce_scatter_each(outputs, [torch.stack(inputs)], opts.reduceOp)

    def reduce_scatter_single(self, output, tensor, opts=c10d.ReduceScatterOptions()):
        return self._reduce_scatter_each([output], [tensor], opts.reduceOp)

    def reduce_scatter_single_coalesced(self, outputs, inputs, opts=c10d.ReduceScatterOptions()):
        return self._reduce_scatter_each(outputs, inputs, opts.reduceOp)

    def alltoall(self, outputs, inputs, opts=c10d.AllToAllOptions()):
        return self._exchange(enumerate(inputs), enumerate(outputs), outputs)

    def all_to_all_single(self, output, tensor, output_sizes, input_sizes,
                          opts=c10d.AllToAllOptions()):
        inputs = tensor.split(input_sizes or len(tensor) // self._size)
        outputs = output.split(output_sizes or len(output) // self._size)
        return self._exchange(enumerate(inputs), enumerate(outputs), [output])

    def gather(self, output_lists, inputs, opts=c10d.GatherOptions()):
        outputs = output_lists[0] if self._rank == opts.rootRank else []
        return self._exchange([(opts.rootRank, inputs[0])], enumerate(outputs), outputs)

    def scatter(self, outputs, input_lists, opts=c10d.ScatterOptions()):
        sends = enumerate(input_lists[0]) if self._rank == opts.rootRank else ()
        return self._exchange(sends, [(opts.rootRank, outputs[0])], outputs)

    def send(self, tensors, peer, tag=0):
        return self._to_or_from("send", tensors, peer)

    def recv(self, tensors, peer, tag=0):
        return self._to_or_from("receive", tensors, peer)

    def recv_anysource(self, tensors, tag=0):
        raise RuntimeError("nccl_cpu: NCCL cannot receive from any source; name the rank")

    def shutdown(self):
        """Waits for what was enqueued; called by destroy_process_group()."""
        communicators = self._take_communicators()
        for comm in communicators:
            comm.finalize()
        for comm in communicators:
            comm.destroy()

    def abort(self):
        for comm in self._take_communicators():
            comm.abort()

    def _take_communicators(self):
        _alive.discard(self)
        communicators = [self._collective] if self._collective else []
        communicators += self._pairs.values()
        self._collective, self._pairs = None, {}
        return communicators

    def _communicator(self):
        if self._collective is None:
            self._collective = Communicator.join(
                self._store, "nccl_id", self._rank, self._size, self._description()
            )
        return self._collective

    def _pair_with(self, peer):
        if peer not in self._pairs:
            low, high = sorted((self._rank, peer))
            self._pairs[peer] = Communicator.join(
                self._store, f"nccl_id:{low}:{high}", int(self._rank == high), 2,
                f"{self._description()}:p2p:{low}:{high}",
            )
        return self._pairs[peer]

    def _description(self):
        """The group's name for people, which torch sets after it has made the backend."""
        named = self.group_desc not in ("", "undefined")
        return self.group_desc if named else f"group {self.group_name}"

    def _launch(self, calls, result, keep=(), finish=None, grouped=False, comm=None):
        """Enqueues (function of Communicator, its arguments...) tuples as one operation."""
        if self._batch is not None:
            self._batch.append(PendingWork(calls, result, keep, finish))
            return self._batch[-1]
        self._launched += 1
        comm = comm or self._communicator()
        if grouped or len(calls) != 1:
            with nccl.group():
                _enqueue(comm, calls)
        else:
            _enqueue(comm, calls)
        return NcclWork(comm, result, (calls, keep), finish)

    def _to_or_from(self, function, tensors, peer):
        (flat,) = _flat(tensors)
        if self._batch is not None:
            return self._launch([(function, flat, peer)], tensors)
        return self._launch([(function, flat, int(self._rank < peer))], tensors,
                            comm=self._pair_with(peer))

    def _all_reduce_each(self, tensors, reduction):
        calls = [("all_reduce", flat, flat, reduction) for flat in _flat(tensors)]
        return self._launch(calls, tensors)

    def _all_gather_each(self, outputs, inputs, result, finish=None):
        calls = []
        for output, tensor in zip(_flat(outputs), _flat(inputs), strict=True):
            _check_ratio(output, tensor, self._size)
            calls.append(("all_gather", tensor, output))
        return self._launch(calls, result, (outputs, inputs), finish)

    def _all_gather_uneven(self, outputs, tensor):
        calls = []
        for root, output in enumerate(_flat(outputs)):
            send = _flat([tensor])[0] if root == self._rank else output
            calls.append(("broadcast", send, output, root))
        return self._launch(calls, outputs, tensor, grouped=True)

    def _reduce_scatter_each(self, outputs, inputs, reduction):
        calls = []
        for output, tensor in zip(_flat(outputs), _flat(inputs), strict=True):
            _check_ratio(tensor, output, self._size)
            calls.append(("reduce_scatter", tensor, output, reduction))
        return self._launch(calls, outputs, inputs)

    def _reduce_scatter_uneven(self, output, inputs, reduction):
        calls = []
        for root, tensor in enumerate(_flat(inputs)):
            receive = _flat([output])[0] if root == self._rank else tensor
            calls.append(("reduce", tensor, receive, reduction, root))
        return self._launch(calls, [output], inputs, grouped=True)

    def _exchange(self, sends, receives, result):
        """Sends and receives of (peer, tensor) as one operation; empty tensors are left out."""
        calls = []
        for function, transfers in (("send", sends), ("receive", receives)):
            for peer, tensor in transfers:
                if tensor.numel() > 0:
                    calls.append((function, _flat([tensor])[0], peer))
        return self._launch(calls, result, grouped=True)


def _enqueue(comm, calls):
    for function, *arguments in calls:
        getattr(comm, function)(*arguments)


def _flat(tensors):
    """The same memory as NCCL sees it: elements in a row, complex as pairs of real."""
    for tensor in tensors:
        if tensor.device.type != "cpu" or tensor.is_sparse:
            raise ValueError(f"nccl_cpu: needs dense CPU tensors, not {tensor.layout} "
                             f"on {tensor.device}")
        if not torch.ops.aten.is_non_overlapping_and_dense(tensor):
            raise ValueError("nccl_cpu: tensors must be contiguous")
    detached = [tensor.detach() for tensor in tensors]
    return [torch.view_as_real(tensor) if tensor.is_complex() else tensor for tensor in detached]


def _check_ratio(large, small, size):
    if large.numel() != small.numel() * size or large.dtype != small.dtype:
        raise ValueError(
            f"nccl_cpu: {large.numel()} elements of {large.dtype} are not {size} times "
            f"{small.numel()} of {small.dtype}"
        )


def _copy_each(targets, sources):
    for target, source in zip(targets, sources, strict=True):
        target.copy_(source)
