# SPDX-License-Identifier: Apache-2.0
"""32 Python threads, each blocked some calls deep, and a communicator."""
import ctypes
import threading
import time


class UniqueId(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_byte * 128)]


def stand_in_leaf():
    never.acquire()


def descend(depth):
    if depth == 0:
        stand_in_leaf()
    else:
        descend(depth - 1)


nccl = ctypes.CDLL("libnccl.so.2")
unique, communicator = UniqueId(), ctypes.c_void_p()
assert nccl.ncclGetUniqueId(ctypes.byref(unique)) == 0
assert nccl.ncclCommInitRank(ctypes.byref(communicator), 1, unique, 0) == 0
never = threading.Lock()
never.acquire()
for _ in range(32):
    threading.Thread(target=descend, args=(10,), daemon=True).start()
time.sleep(1)
print("ready", flush=True)
never.acquire()
