# SPDX-License-Identifier: Apache-2.0
"""The few functions of the CUDA runtime that the backend needs, by ctypes.

ctypes.CDLL releases the interpreter's lock around every call, so a wait in here
blocks one thread and not the process. A call that fails raises RuntimeError.
"""

import ctypes
import functools
import os
import weakref

_NAMES = ("libcudart.so.13", "libcudart.so.12", "libcudart.so")
_NON_BLOCKING_STREAM = 1
_EVENT_WITHOUT_TIMING = 2
_NOT_READY = 600
# A runtime without a driver or a device, as the CUDA toolkit gives on a machine without a GPU.
_NO_DEVICE_ERRORS = (35, 100)
_ADVICE = "\n  without a GPU:  export LD_LIBRARY_PATH=build/release/sim"

_SIGNATURES = {
    "cudaGetDeviceCount": [ctypes.POINTER(ctypes.c_int)],
    "cudaSetDevice": [ctypes.c_int],
    "cudaStreamCreateWithFlags": [ctypes.POINTER(ctypes.c_void_p), ctypes.c_uint],
    "cudaStreamDestroy": [ctypes.c_void_p],
    "cudaEventCreateWithFlags": [ctypes.POINTER(ctypes.c_void_p), ctypes.c_uint],
    "cudaEventDestroy": [ctypes.c_void_p],
    "cudaEventRecord": [ctypes.c_void_p, ctypes.c_void_p],
    "cudaEventQuery": [ctypes.c_void_p],
    "cudaEventSynchronize": [ctypes.c_void_p],
}


@functools.cache
def _runtime():
    for name in _NAMES:
        try:
            library = ctypes.CDLL(name)
        except OSError:
            continue
        for function, arguments in _SIGNATURES.items():
            getattr(library, function).argtypes = arguments
        return library
    raise RuntimeError(
        f"nccl_cpu: cannot open the CUDA runtime ({', '.join(_NAMES)})" + _ADVICE
    )


def _check(function, result):
    if result != 0:
        advice = _ADVICE if result in _NO_DEVICE_ERRORS else ""
        raise RuntimeError(f"nccl_cpu: {function} failed with CUDA error {result}{advice}")


def _call(function, *arguments):
    _check(function, getattr(_runtime(), function)(*arguments))


def use_local_device():
    """Selects the device that torchrun's LOCAL_RANK means, as GPU scripts do."""
    count = ctypes.c_int()
    _call("cudaGetDeviceCount", ctypes.byref(count))
    _call("cudaSetDevice", int(os.environ.get("LOCAL_RANK", "0")) % max(count.value, 1))


class Stream:
    def __init__(self):
        self.handle = ctypes.c_void_p()
        _call("cudaStreamCreateWithFlags", ctypes.byref(self.handle), _NON_BLOCKING_STREAM)

    def destroy(self):
        _call("cudaStreamDestroy", self.handle)


class Event:
    """A point in a stream, recorded at once. Lives as long as a thread looks at it."""

    def __init__(self, stream):
        self._handle = ctypes.c_void_p()
        _call("cudaEventCreateWithFlags", ctypes.byref(self._handle), _EVENT_WITHOUT_TIMING)
        weakref.finalize(self, _runtime().cudaEventDestroy, self._handle).atexit = False
        _call("cudaEventRecord", self._handle, stream.handle)

    def synchronize(self):
        _call("cudaEventSynchronize", self._handle)

    def query(self):
        result = _runtime().cudaEventQuery(self._handle)
        if result == _NOT_READY:
            return False
        _check("cudaEventQuery", result)
        return True
