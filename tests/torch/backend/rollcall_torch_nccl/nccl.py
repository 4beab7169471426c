# SPDX-License-Identifier: Apache-2.0
"""NCCL by ctypes: opened by name and called through its handle, as serving
frameworks do.

Numbers and layouts are those of NCCL's nccl.h. A call that NCCL refuses raises
torch.distributed.DistBackendError with NCCL's own words.
"""

import contextlib
import ctypes
import functools

import torch
import torch.distributed as dist

_UNDEFINED = -(2**31)  # NCCL_CONFIG_UNDEF_INT
_UNIQUE_ID_BYTES = 128
_NO_COLOR = -1  # NCCL_SPLIT_NOCOLOR

_DATA_TYPES = {
    torch.int8: 0,
    torch.uint8: 1,
    torch.bool: 1,
    torch.int32: 2,
    torch.uint32: 3,
    torch.int64: 4,
    torch.uint64: 5,
    torch.float16: 6,
    torch.float32: 7,
    torch.float64: 8,
    torch.bfloat16: 9,
    torch.float8_e4m3fn: 10,
    torch.float8_e5m2: 11,
}

_SUM, _PRODUCT, _MAX, _MIN, _AVERAGE = range(5)
_REDUCTIONS = (
    (dist.ReduceOp.SUM, _SUM),
    (dist.ReduceOp.PRODUCT, _PRODUCT),
    (dist.ReduceOp.MAX, _MAX),
    (dist.ReduceOp.MIN, _MIN),
    (dist.ReduceOp.AVG, _AVERAGE),
)


class UniqueId(ctypes.Structure):
    _fields_ = [("internal", ctypes.c_char * _UNIQUE_ID_BYTES)]


class _Config(ctypes.Structure):
    """ncclConfig_t as NCCL 2.27 has it. Its size tells newer libraries where to stop."""

    _fields_ = [
        ("size", ctypes.c_size_t),
        ("magic", ctypes.c_uint),
        ("version", ctypes.c_uint),
        ("blocking", ctypes.c_int),
        ("cga_cluster_size", ctypes.c_int),
        ("min_ctas", ctypes.c_int),
        ("max_ctas", ctypes.c_int),
        ("net_name", ctypes.c_char_p),
        ("split_share", ctypes.c_int),
        ("traffic_class", ctypes.c_int),
        ("comm_name", ctypes.c_char_p),
        ("collnet_enable", ctypes.c_int),
        ("cta_policy", ctypes.c_int),
        ("shrink_share", ctypes.c_int),
        ("nvls_ctas", ctypes.c_int),
    ]

    def __init__(self, name):
        integers = [field for field, kind in self._fields_ if kind is ctypes.c_int]
        super().__init__(
            size=ctypes.sizeof(type(self)),
            magic=0xCAFEBEEF,
            version=22700,
            comm_name=name.encode(),
            **dict.fromkeys(integers, _UNDEFINED),
        )


_pointer, _int, _size = ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t
_SIGNATURES = {
    "ncclGetUniqueId": [ctypes.POINTER(UniqueId)],
    "ncclCommInitRankConfig": [
        ctypes.POINTER(_pointer), _int, UniqueId, _int, ctypes.POINTER(_Config)
    ],
    # communicator, color, key, where the new one goes, its config
    "ncclCommSplit": [
        _pointer, _int, _int, ctypes.POINTER(_pointer), ctypes.POINTER(_Config)
    ],
    "ncclCommFinalize": [_pointer],
    "ncclCommDestroy": [_pointer],
    "ncclCommAbort": [_pointer],
    "ncclCommGetAsyncError": [_pointer, ctypes.POINTER(_int)],
    "ncclGroupStart": [],
    "ncclGroupEnd": [],
    # send, receive, count, data type, then what the function is about.
    "ncclAllReduce": [_pointer, _pointer, _size, _int, _int, _pointer, _pointer],
    "ncclReduce": [_pointer, _pointer, _size, _int, _int, _int, _pointer, _pointer],
    "ncclBroadcast": [_pointer, _pointer, _size, _int, _int, _pointer, _pointer],
    "ncclAllGather": [_pointer, _pointer, _size, _int, _pointer, _pointer],
    "ncclReduceScatter": [_pointer, _pointer, _size, _int, _int, _pointer, _pointer],
    "ncclSend": [_pointer, _size, _int, _int, _pointer, _pointer],
    "ncclRecv": [_pointer, _size, _int, _int, _pointer, _pointer],
}


@functools.cache
def _library():
    try:
        library = ctypes.CDLL("libnccl.so.2")
    except OSError as error:
        raise RuntimeError(
            f"nccl_cpu: cannot open NCCL: {error}\n"
            "  without a GPU:  export LD_LIBRARY_PATH=build/release/sim"
        ) from None
    for function, arguments in _SIGNATURES.items():
        getattr(library, function).argtypes = arguments
    library.ncclGetErrorString.argtypes = [_int]
    library.ncclGetErrorString.restype = ctypes.c_char_p
    return library


def _check(function, result):
    if result != 0:
        words = _library().ncclGetErrorString(result).decode()
        raise dist.DistBackendError(f"{function} failed: {words} (ncclResult_t {result})")


def call(function, *arguments):
    _check(function, getattr(_library(), function)(*arguments))


def data_type(tensor):
    try:
        return _DATA_TYPES[tensor.dtype]
    except KeyError:
        raise TypeError(f"nccl_cpu: NCCL has no data type for {tensor.dtype}") from None


def reduction(operation, tensor):
    """ncclRedOp_t for torch's `operation`. NCCL sums bool as bytes, so "any" is a maximum there."""
    for torch_operation, nccl_operation in _REDUCTIONS:
        if operation == torch_operation:
            if tensor.dtype is torch.bool and nccl_operation == _SUM:
                return _MAX
            return nccl_operation
    raise ValueError(f"nccl_cpu: NCCL cannot reduce with {operation}")


@contextlib.contextmanager
def group():
    call("ncclGroupStart")
    try:
        yield
    finally:
        call("ncclGroupEnd")


def new_unique_id():
    unique_id = UniqueId()
    call("ncclGetUniqueId", ctypes.byref(unique_id))
    return bytes(unique_id)


def init_rank(size, unique_id, rank, name):
    """Joins a communicator. Blocks until all its ranks have come."""
    handle = _pointer()
    config = _Config(name)
    call(
        "ncclCommInitRankConfig",
        ctypes.byref(handle),
        size,
        UniqueId.from_buffer_copy(unique_id),
        rank,
        ctypes.byref(config),
    )
    return handle


def split(handle, color, name):
    """ncclCommSplit by color, ranks in their order; None where color is None."""
    child = _pointer()
    config = _Config(name)
    color = _NO_COLOR if color is None else color
    call("ncclCommSplit", handle, color, 0, ctypes.byref(child), ctypes.byref(config))
    return child if child.value else None


def check_async_error(handle):
    error = _int()
    call("ncclCommGetAsyncError", handle, ctypes.byref(error))
    _check("an NCCL operation", error.value)
