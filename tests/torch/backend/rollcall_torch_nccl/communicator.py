# SPDX-License-Identifier: Apache-2.0
"""One NCCL communicator with its stream, as a ProcessGroupNCCL holds them."""

import collections
import threading

from . import cuda, nccl
from .work import Completer


class Communicator:
    @classmethod
    def join(cls, store, key, rank, size, name):
        """Blocks until all its ranks have come.

        The id travels through the group's store: rank 0 sets it, the others wait for it.
        """
        cuda.use_local_device()
        if rank == 0:
            store.set(key, nccl.new_unique_id())
        handle = nccl.init_rank(size, store.get(key), rank, name)
        if rank == 0:
            # All have read it. A group that is made again must not find the old one.
            store.delete_key(key)
        return cls(handle)

    def __init__(self, handle):
        self._handle = handle
        self._stream = cuda.Stream()
        self._completer = None
        self._in_use = collections.deque()  # (event, memory in use until then)
        self._in_use_lock = threading.Lock()

    def split(self, color, name):
        """A communicator of all that give the same color; None for those that give None."""
        handle = nccl.split(self._handle, color, name)
        return Communicator(handle) if handle else None

    def all_reduce(self, send, receive, reduction):
        self._call("ncclAllReduce", send, receive, nccl.reduction(reduction, send))

    def reduce(self, send, receive, reduction, root):
        self._call("ncclReduce", send, receive, nccl.reduction(reduction, send), root)

    def broadcast(self, send, receive, root):
        self._call("ncclBroadcast", send, receive, root)

    def all_gather(self, send, receive):
        self._call("ncclAllGather", send, receive)

    def reduce_scatter(self, send, receive, reduction):
        nccl.call(
            "ncclReduceScatter", send.data_ptr(), receive.data_ptr(), receive.numel(),
            nccl.data_type(send), nccl.reduction(reduction, send), self._handle,
            self._stream.handle,
        )

    def send(self, tensor, peer):
        self._call_peer("ncclSend", tensor, peer)

    def receive(self, tensor, peer):
        self._call_peer("ncclRecv", tensor, peer)

    def record_event(self, memory):
        """The end of what is enqueued now. Keeps `memory` till then, waited for or not."""
        self.release_memory()
        event = cuda.Event(self._stream)
        with self._in_use_lock:
            self._in_use.append((event, memory))
        return event

    def release_memory(self):
        with self._in_use_lock:
            while self._in_use and self._in_use[0][0].query():
                self._in_use.popleft()

    def complete_later(self, work):
        if self._completer is None:
            self._completer = Completer()
        self._completer.add(work)

    def check_async_error(self):
        if self._handle is not None:
            nccl.check_async_error(self._handle)

    def finalize(self):
        nccl.call("ncclCommFinalize", self._handle)

    def destroy(self):
        self._release("ncclCommDestroy")

    def abort(self):
        self._release("ncclCommAbort")

    def _release(self, function):
        handle, self._handle = self._handle, None
        nccl.call(function, handle)
        if self._completer is not None:
            self._completer.stop()
        self._stream.destroy()

    def _call(self, function, send, receive, *what):
        nccl.call(
            function, send.data_ptr(), receive.data_ptr(), send.numel(), nccl.data_type(send),
            *what, self._handle, self._stream.handle,
        )

    def _call_peer(self, function, tensor, peer):
        nccl.call(
            function, tensor.data_ptr(), tensor.numel(), nccl.data_type(tensor), peer,
            self._handle, self._stream.handle,
        )
