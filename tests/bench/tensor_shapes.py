# SPDX-License-Identifier: Apache-2.0
"""Measures the cost of recording tensor shapes, for each collective that Python calls.

    python3 tests/bench/tensor_shapes.py [BUILD]       BUILD: build/release

A stand-in for c10d's ProcessGroup whose methods do nothing, so that nothing but the wrapper is
measured, in processes with and without it, in turn; the median of the rounds.
"""

import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

BUILD = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "build/release").resolve()
ROUNDS = 9
PROGRAM = """
import ctypes, sys, time, types
class Id(ctypes.Structure): _fields_ = [('b', ctypes.c_byte * 128)]
class Tensor: shape = (1024, 4096)
class ProcessGroup:
    group_desc = "dp"
    def allreduce(self, tensors, opts=None): pass
module = types.ModuleType("torch._C._distributed_c10d")
module.ProcessGroup = ProcessGroup
sys.modules[module.__name__] = module
nccl = ctypes.CDLL('libnccl.so.2')
i, comm = Id(), ctypes.c_void_p()
assert nccl.ncclGetUniqueId(ctypes.byref(i)) == 0
assert nccl.ncclCommInitRank(ctypes.byref(comm), 1, i, 0) == 0
group, tensors = ProcessGroup(), [Tensor()]
for _ in range(1000): group.allreduce(tensors)
calls = 200_000
begun = time.perf_counter_ns()
for _ in range(calls): group.allreduce(tensors)
print((time.perf_counter_ns() - begun) / calls)
"""


def one(asked, segments):
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True,
        env={**os.environ, "LD_PRELOAD": str(BUILD / "lib" / "librollcall.so"),
             "LD_LIBRARY_PATH": str(BUILD / "sim"), "ROLLCALL_DIR": segments,
             "ROLLCALL_TENSOR_SHAPES": asked})
    return float(done.stdout)


with tempfile.TemporaryDirectory() as segments:
    runs = [(one("0", segments), one("1", segments)) for _ in range(ROUNDS)]
without, with_shapes = (statistics.median(column) for column in zip(*runs))
print(f"an empty method: {without:.0f} ns; telling shapes: {with_shapes:.0f} ns; "
      f"added {with_shapes - without:.0f} ns a call")
