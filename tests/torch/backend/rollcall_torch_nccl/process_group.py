"""torch.distributed's process group over NCCL communicators, for CPU tensors.

Made to call NCCL as ProcessGroupNCCL does: the communicator is created at the
first collective, lists are gathered through one flat tensor, a barrier is an
all-reduce of one element, peers that send outside a collective get a
communicator of their own, and shutdown finalizes every communicator before it
destroys the first.

Every method enqueues and returns its NcclWork at once. Not here, because torch
asks it only of its own C++ groups: coalescing of batch_isend_irecv, which runs
its operations one after another instead.
"""

import contextlib

import torch
import torch.distributed as dist
from torch.distributed import distributed_c10d as c10d

from . import nccl
from .communicator import Communicator
from .work import NcclWork


class NcclProcessGroup(dist.ProcessGroup):
    def __init__(self, store, rank, size):
        super().__init__(rank, size)
        self._store = store
        self._rank = rank
        self._size = size
        self._name = self._description = ""
        self._collective = None
        self._pairs = {}  # peer -> Communicator of two ranks

    def getBackendName(self):
        return "nccl_cpu"

    # Asked of Python because torch keeps these in its C++ backends, and this has none.
    def setGroupName(self, name):
        self._name = name

    def getGroupName(self):
        return self._name

    def setGroupDesc(self, description):
        self._description = description

    def getGroupDesc(self):
        return self._description

    def allreduce(self, tensors, opts=c10d.AllreduceOptions()):
        return self._all_reduce_each(tensors, opts.reduceOp)

    def allreduce_coalesced(self, tensors, opts=c10d.AllreduceCoalescedOptions()):
        return self._all_reduce_each(tensors, opts.reduceOp)

    def barrier(self, opts=c10d.BarrierOptions()):
        return self._all_reduce_each([torch.zeros(1)], dist.ReduceOp.SUM)

    def broadcast(self, tensors, opts=c10d.BroadcastOptions()):
        (flat,) = _flat(tensors)
        comm = self._communicator()
        comm.broadcast(flat, flat, opts.rootRank)
        return NcclWork(comm, tensors)

    def reduce(self, tensors, opts=c10d.ReduceOptions()):
        (flat,) = _flat(tensors)
        comm = self._communicator()
        comm.reduce(flat, flat, opts.reduceOp, opts.rootRank)
        return NcclWork(comm, tensors)

    def allgather(self, output_lists, inputs, opts=c10d.AllgatherOptions()):
        (outputs,), (tensor,) = output_lists, inputs
        if any(output.shape != tensor.shape for output in outputs):
            return self._all_gather_uneven(output_lists, tensor)
        gathered = tensor.new_empty((self._size, *tensor.shape))
        return self._all_gather_each(
            [gathered], [tensor], output_lists, lambda: _copy_each(outputs, gathered)
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
        receives = enumerate(output_lists[0]) if self._rank == opts.rootRank else ()
        return self._exchange([(opts.rootRank, inputs[0])], receives, output_lists)

    def scatter(self, outputs, input_lists, opts=c10d.ScatterOptions()):
        sends = enumerate(input_lists[0]) if self._rank == opts.rootRank else ()
        return self._exchange(sends, [(opts.rootRank, outputs[0])], outputs)

    def send(self, tensors, peer, tag=0):
        (flat,) = _flat(tensors)
        comm = self._pair_with(peer)
        comm.send(flat, int(self._rank < peer))
        return NcclWork(comm, tensors)

    def recv(self, tensors, peer, tag=0):
        (flat,) = _flat(tensors)
        comm = self._pair_with(peer)
        comm.receive(flat, int(self._rank < peer))
        return NcclWork(comm, tensors)

    def recv_anysource(self, tensors, tag=0):
        raise RuntimeError("nccl_cpu: NCCL cannot receive from any source; name the rank")

    # The names that torch's C++ and older callers look for.
    _allgather_base = all_gather_single
    _reduce_scatter_base = reduce_scatter_single
    allgather_into_tensor_coalesced = all_gather_single_coalesced
    reduce_scatter_tensor_coalesced = reduce_scatter_single_coalesced
    alltoall_base = all_to_all_single

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
        communicators = [self._collective] if self._collective else []
        communicators += self._pairs.values()
        self._collective, self._pairs = None, {}
        return communicators

    def _communicator(self):
        if self._collective is None:
            self._collective = Communicator(
                self._store, "nccl_id", self._rank, self._size, self._description
            )
        return self._collective

    def _pair_with(self, peer):
        if peer not in self._pairs:
            low, high = sorted((self._rank, peer))
            self._pairs[peer] = Communicator(
                self._store, f"nccl_id:{low}:{high}", int(self._rank == high), 2,
                f"{self._description}:p2p:{low}:{high}",
            )
        return self._pairs[peer]

    def _all_reduce_each(self, tensors, reduction):
        comm = self._communicator()
        with _grouped(tensors):
            for flat in _flat(tensors):
                comm.all_reduce(flat, flat, reduction)
        return NcclWork(comm, tensors)

    def _all_gather_each(self, outputs, inputs, result, finish=None):
        comm = self._communicator()
        with _grouped(outputs):
            for output, tensor in zip(_flat(outputs), _flat(inputs), strict=True):
                _check_ratio(output, tensor, self._size)
                comm.all_gather(tensor, output)
        return NcclWork(comm, result, (outputs, inputs), finish)

    def _all_gather_uneven(self, output_lists, tensor):
        comm = self._communicator()
        with nccl.group():
            for root, output in enumerate(_flat(output_lists[0])):
                send = _flat([tensor])[0] if root == self._rank else output
                comm.broadcast(send, output, root)
        return NcclWork(comm, output_lists, tensor)

    def _reduce_scatter_each(self, outputs, inputs, reduction):
        comm = self._communicator()
        with _grouped(outputs):
            for output, tensor in zip(_flat(outputs), _flat(inputs), strict=True):
                _check_ratio(tensor, output, self._size)
                comm.reduce_scatter(tensor, output, reduction)
        return NcclWork(comm, outputs, inputs)

    def _reduce_scatter_uneven(self, output, inputs, reduction):
        comm = self._communicator()
        with nccl.group():
            for root, tensor in enumerate(_flat(inputs)):
                receive = _flat([output])[0] if root == self._rank else tensor
                comm.reduce(tensor, receive, reduction, root)
        return NcclWork(comm, [output], inputs)

    def _exchange(self, sends, receives, result):
        """Sends and receives of (peer, tensor) as one operation; empty tensors are left out."""
        sends, receives = list(sends), list(receives)
        comm = self._communicator()
        with nccl.group():
            for peer, tensor in sends:
                if tensor.numel() > 0:
                    comm.send(_flat([tensor])[0], peer)
            for peer, tensor in receives:
                if tensor.numel() > 0:
                    comm.receive(_flat([tensor])[0], peer)
        return NcclWork(comm, result, (sends, receives))


def _grouped(tensors):
    """A single call needs no group around it."""
    return contextlib.nullcontext() if len(tensors) == 1 else nccl.group()


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
