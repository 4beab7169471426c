# SPDX-License-Identifier: Apache-2.0
"""SGLang's wrapper of NCCL (ctypes), from its file: the package itself wants a GPU.

    sglang_wrapper.py PYNCCL_WRAPPER LIBNCCL
"""

import importlib.util
import sys

spec = importlib.util.spec_from_file_location("pynccl_wrapper", sys.argv[1])
wrapper = importlib.util.module_from_spec(spec)
spec.loader.exec_module(wrapper)

nccl = wrapper.NCCLLibrary(sys.argv[2])
print(f"NCCL {nccl.ncclGetVersion()}")
unique_id = nccl.ncclGetUniqueId()
print(f"a unique id of {len(bytes(unique_id))} bytes")
nccl.ncclCommInitRank(1, unique_id, 0)
