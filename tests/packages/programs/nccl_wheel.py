# SPDX-License-Identifier: Apache-2.0
"""NCCL's own wheel by ctypes, which loads it for itself alone (RTLD_LOCAL) and asks dlsym.

    nccl_wheel.py LIBNCCL
"""

import ctypes
import sys


class UniqueId(ctypes.Structure):
    _fields_ = [("internal", ctypes.c_char * 128)]


nccl = ctypes.CDLL(sys.argv[1])
nccl.ncclCommInitRank.argtypes = [ctypes.POINTER(ctypes.c_void_p), ctypes.c_int, UniqueId,
                                  ctypes.c_int]
nccl.ncclGetErrorString.restype = nccl.ncclGetLastError.restype = ctypes.c_char_p


def check(result):
    if result != 0:
        raise RuntimeError(f"{nccl.ncclGetErrorString(result).decode()}, "
                           f"{nccl.ncclGetLastError(None).decode()}")


version, unique_id, comm = ctypes.c_int(), UniqueId(), ctypes.c_void_p()
check(nccl.ncclGetVersion(ctypes.byref(version)))
check(nccl.ncclGetUniqueId(ctypes.byref(unique_id)))
code = version.value
print(f"NCCL {code // 10000}.{code // 100 % 100}.{code % 100}")
print(f"a unique id of {len(bytes(unique_id))} bytes")
check(nccl.ncclCommInitRank(ctypes.byref(comm), 1, unique_id, 0))
