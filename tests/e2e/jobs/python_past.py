# SPDX-License-Identifier: Apache-2.0
"""A healthy job that is past its communicators: one rank starts late, all train and destroy what
they trained with, and each writes its results alone."""

import ctypes
import os
import time

import python_rank


def _store_based_barrier(seconds):
    time.sleep(seconds)


def write_results():
    time.sleep(6)


def main():
    late = 11.5
    if python_rank.RANK == 0:
        time.sleep(late)
    else:
        _store_based_barrier(late)
    nccl, cuda = ctypes.CDLL("libnccl.so.2"), ctypes.CDLL("libcudart.so")
    pointer, size = ctypes.c_void_p, ctypes.c_size_t
    nccl.ncclAllReduce.argtypes = [pointer, pointer, size, ctypes.c_int, ctypes.c_int, pointer,
                                   pointer]
    nccl.ncclCommInitRank.argtypes = [ctypes.POINTER(pointer), ctypes.c_int, python_rank.UniqueId,
                                      ctypes.c_int]
    comm, memory = pointer(), pointer()
    cuda.cudaMalloc(ctypes.byref(memory), size(4096))
    nccl.ncclCommInitRank(ctypes.byref(comm), python_rank.SIZE, python_rank.share_unique_id(nccl),
                          python_rank.RANK)
    for _ in range(300):
        nccl.ncclAllReduce(memory, memory, 8, python_rank.FLOAT32, python_rank.SUM, comm, None)
        cuda.cudaStreamSynchronize(None)
        time.sleep(0.01)
    nccl.ncclCommDestroy.argtypes = [pointer]
    nccl.ncclCommDestroy(comm)
    write_results()


if __name__ == "__main__":
    assert "RANK" in os.environ
    main()
