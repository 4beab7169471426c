# SPDX-License-Identifier: Apache-2.0
"""CuPy: a compiled module that is linked with libnccl.so.2."""

from cupy.cuda import nccl

code, unique_id = nccl.get_version(), nccl.get_unique_id()
print(f"NCCL {code // 10000}.{code // 100 % 100}.{code % 100}")
print(f"a unique id of {len(unique_id)} bytes")
nccl.NcclCommunicator(1, unique_id, 0)
