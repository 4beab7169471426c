# SPDX-License-Identifier: Apache-2.0
"""What a collective returns: something to wait for, and a future.

A CPU tensor has no stream that could order its readers after NCCL, so unlike
ProcessGroupNCCL a wait here blocks the host until the data is there: in
cudaEventSynchronize, where a preloaded library can see it.
"""

import dataclasses
import queue
import threading
import typing

import torch


@dataclasses.dataclass(eq=False)
class PendingWork:
    """A part of a coalesced run, which is enqueued when the run ends; that has the NcclWork."""

    calls: list
    result: list
    keep: object
    finish: typing.Callable | None

    def wait(self):
        raise RuntimeError("nccl_cpu: part of a coalesced run; wait for the run")

    is_completed = get_future = wait


class NcclWork:
    """What was just enqueued on `communicator`.

    `result` and `keep` hold the memory that NCCL uses; `finish` is run once, by the
    first who waits, when the data is there.
    """

    def __init__(self, communicator, result, keep=(), finish=None):
        self._communicator = communicator
        self._event = communicator.record_event((result, keep))
        self._result = result
        self._finish = finish
        self._future = None
        self._lock = threading.Lock()

    def wait(self):
        event = self._event
        if event is not None:
            event.synchronize()
            self._complete()
        return True

    def is_completed(self):
        event = self._event
        return event is None or event.query()

    def result(self):
        self.wait()
        return self._result

    def get_future(self):
        """A future that is complete only when the data is."""
        if self._future is None:
            self._future = torch.futures.Future()
            self._communicator.complete_later(self)
        return self._future

    def set_future(self):
        """Waits and completes the future; called by the communicator's thread."""
        try:
            self.wait()
        except Exception as error:
            self._future.set_exception(error)
        else:
            self._future.set_result(self._result)

    def _complete(self):
        # The caller and the communicator's thread may both have waited.
        with self._lock:
            if self._event is None:
                return
            self._communicator.check_async_error()
            if self._finish is not None:
                with torch.no_grad():
                    self._finish()
            self._event = self._finish = None
            self._communicator.release_memory()


class Completer:
    """The thread that completes one communicator's futures, in the stream's order."""

    def __init__(self):
        self._works = queue.SimpleQueue()
        # A daemon: at a hang it waits for ever, and must not keep the process.
        self._thread = threading.Thread(target=self._run, name="nccl_cpu futures", daemon=True)
        self._thread.start()

    def add(self, work):
        self._works.put(work)

    def stop(self):
        """Ends it, if nothing holds it up: a daemon that is still in torch's code when the
        interpreter ends would end the process (Python unwinds it, C++ does not let it)."""
        self._works.put(None)
        if threading.current_thread() is not self._thread:
            self._thread.join(timeout=10)

    def _run(self):
        while (work := self._works.get()) is not None:
            work.set_future()
            del work  # or its tensors would live until the next one comes
