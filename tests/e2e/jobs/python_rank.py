# SPDX-License-Identifier: Apache-2.0
"""A rank in Python: a few all-reduces through ctypes, then its last one ends in its own way.

    ranks -n 4 --grace 0 -- python3 python_rank.py HOW

The highest rank does HOW instead of its last all-reduce; the others wait for it.
"""

import ctypes
import os
import pathlib
import queue
import signal
import sys
import threading
import time

RANK, SIZE = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
FLOAT32, SUM = 7, 0


class UniqueId(ctypes.Structure):
    _fields_ = [("internal", ctypes.c_char * 128)]


def share_unique_id(nccl):
    file = pathlib.Path(os.environ["ROLLCALL_TEST_ID_FILE"])
    unique_id = UniqueId()
    if RANK == 0:
        nccl.ncclGetUniqueId(ctypes.byref(unique_id))
        file.with_suffix(".new").write_bytes(bytes(unique_id))
        file.with_suffix(".new").rename(file)
    while not file.exists():
        time.sleep(0.001)
    return UniqueId.from_buffer_copy(file.read_bytes())


def sign_of(rank):
    """The file by which a rank says that it makes its last call."""
    return pathlib.Path(os.environ["ROLLCALL_TEST_ID_FILE"]).with_suffix(f".last-call-{rank}")


def has_begun_to_wait(rank):
    """On a busy machine a rank that has left its sign is not yet in the call."""
    sign = sign_of(rank)
    pid = sign.read_text() if sign.exists() else ""
    return pid != "" and pathlib.Path("/proc", pid, "stat").read_text().rpartition(")")[2].split()[0] == "S"


def wait_until_others_wait():
    while not all(has_begun_to_wait(rank) for rank in range(SIZE - 1)):
        time.sleep(0.001)
    time.sleep(0.5)


class LoaderError(Exception):
    pass


def read_batch(number):
    raise LoaderError(f"batch {number} is damaged\nsecond line of the message")


def fill(batches):
    batches.put(read_batch(17))


def hook_of_the_program(kind, value, traceback):
    print(f"the program's own hook: {kind.__name__}", file=sys.stderr, flush=True)


def main():
    nccl, cuda = ctypes.CDLL("libnccl.so.2"), ctypes.CDLL("libcudart.so")
    pointer, size = ctypes.c_void_p, ctypes.c_size_t
    nccl.ncclAllReduce.argtypes = [pointer, pointer, size, ctypes.c_int, ctypes.c_int, pointer,
                                   pointer]
    nccl.ncclCommInitRank.argtypes = [ctypes.POINTER(pointer), ctypes.c_int, UniqueId,
                                      ctypes.c_int]
    how = sys.argv[1]
    if how == "hook":
        sys.excepthook = hook_of_the_program
    if how != "worker":
        return train(how, nccl, cuda)
    # The main thread waits from before the first communicator on.
    worker = threading.Thread(target=train, args=[how, nccl, cuda], name="worker")
    worker.start()
    worker.join()
    time.sleep(60)


def train(how, nccl, cuda):
    pointer, size = ctypes.c_void_p, ctypes.c_size_t
    comm, memory = pointer(), pointer()
    cuda.cudaMalloc(ctypes.byref(memory), size(4096))
    nccl.ncclCommInitRank(ctypes.byref(comm), SIZE, share_unique_id(nccl), RANK)

    said = ctypes.CDLL(None)  # what is preloaded

    def all_reduce(rows=32):
        if hasattr(said, "rollcall_set_shape"):
            said.rollcall_set_shape(2, (ctypes.c_int64 * 2)(rows, 32))
        nccl.ncclAllReduce(memory, memory, rows * 32, FLOAT32, SUM, comm, None)
        cuda.cudaStreamSynchronize(None)

    for step in range(5):
        if hasattr(said, "rollcall_set_step"):
            said.rollcall_set_step(ctypes.c_uint64(800 + step))
        all_reduce()
    if RANK == SIZE - 1:
        said.rollcall_set_phase(b"evaluation")
        wait_until_others_wait()
        if how in ("raise", "hook", "worker"):
            read_batch(17)
        elif how == "thread":
            batches = queue.Queue()
            threading.Thread(target=fill, args=[batches], name="prefetch").start()
            batches.get()
        elif how == "shape":
            all_reduce(rows=16)
        elif how == "exit":
            sys.exit(3)
        elif how == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        elif how == "interrupt":
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(5)
    else:
        sign_of(RANK).write_text(str(os.getpid()))
    all_reduce()


if __name__ == "__main__":
    main()
