# SPDX-License-Identifier: Apache-2.0
"""The torch.distributed backend "nccl_cpu": CPU tensors through libnccl.so.2.

With the simulated NCCL and CUDA runtime on the library path, any program that
uses torch.distributed runs without a GPU and makes the NCCL calls that it would
make on one. Installed, it registers itself when torch is imported; libnccl and
libcudart are not opened before the first collective.
"""


def register():
    """Called by torch through the entry point group `torch.backends`."""
    import torch.distributed as dist

    if not dist.is_available():
        return

    def create(options, _backend_options):
        from .backend import NcclBackend

        return NcclBackend(options.store, options.group_rank, options.group_size)

    dist.Backend.register_backend("nccl_cpu", create, extended_api=True, devices=["cpu"])
