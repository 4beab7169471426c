# SPDX-License-Identifier: Apache-2.0
"""nccl4py: a compiled module that opens the wheel's library and asks dlsym for each function."""

import nccl.core as nccl

# The version only: the path that goes with it is where dladdr finds a function that Rollcall wraps.
print(f"NCCL {nccl.get_version().libnccl.version}")
unique_id = nccl.get_unique_id()
print(f"a unique id of {len(unique_id.as_bytes)} bytes")
nccl.Communicator.init(nranks=1, rank=0, unique_id=unique_id)
