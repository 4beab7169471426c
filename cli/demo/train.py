# SPDX-License-Identifier: Apache-2.0
"""The job of `rollcall demo`: four ranks that average gradients, without a GPU and without PyTorch.

After a few steps rank 3 validates alone, and the validation never ends. The others wait for rank 3
in their next AllReduce.
"""

import ctypes
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

RANKS = 4
FLOAT32, SUM = 7, 0
NUMBERS = 1024


class UniqueId(ctypes.Structure):
    _fields_ = [("internal", ctypes.c_char * 128)]


def share_unique_id(nccl, rank):
    """Rank 0 makes the id and writes it to the file that all ranks know."""
    file = pathlib.Path(os.environ["DEMO_ID_FILE"])
    unique_id = UniqueId()
    if rank == 0:
        nccl.ncclGetUniqueId(ctypes.byref(unique_id))
        file.with_suffix(".new").write_bytes(bytes(unique_id))
        file.with_suffix(".new").rename(file)
    while not file.exists():
        time.sleep(0.01)
    return UniqueId.from_buffer_copy(file.read_bytes())


class Communicator:
    def __init__(self, rank):
        pointer, size = ctypes.c_void_p, ctypes.c_size_t
        self.nccl, self.cuda = ctypes.CDLL("libnccl.so.2"), ctypes.CDLL("libcudart.so")
        self.nccl.ncclAllReduce.argtypes = [pointer, pointer, size, ctypes.c_int, ctypes.c_int,
                                            pointer, pointer]
        self.nccl.ncclCommInitRank.argtypes = [ctypes.POINTER(pointer), ctypes.c_int, UniqueId,
                                               ctypes.c_int]
        self.comm, self.memory = pointer(), pointer()
        self.cuda.cudaMalloc(ctypes.byref(self.memory), size(4 * NUMBERS))
        unique_id = share_unique_id(self.nccl, rank)
        self.nccl.ncclCommInitRank(ctypes.byref(self.comm), RANKS, unique_id, rank)

    def average_gradients(self):
        self.nccl.ncclAllReduce(self.memory, self.memory, NUMBERS, FLOAT32, SUM, self.comm, None)
        self.cuda.cudaStreamSynchronize(None)


def validate():
    """Waits for a file server that does not answer."""
    while True:
        time.sleep(1)


def say(text):
    """Writes the line at once: other ranks write to the same terminal."""
    os.write(sys.stdout.fileno(), f"{text}\n".encode())


def train(rank):
    communicator = Communicator(rank)
    for step in range(10):
        communicator.average_gradients()
        if rank == 0:
            say(f"step {step}: 4 ranks have averaged their gradients")
        time.sleep(0.1)
        if rank == 3 and step == 5:
            say("rank 3: validates alone")
            validate()


def main():
    if "DEMO_RANK" in os.environ:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # four tracebacks would hide the verdict
        return train(int(os.environ["DEMO_RANK"]))
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda number, _: sys.exit(128 + number))  # removes the folder
    with tempfile.TemporaryDirectory() as folder:
        environment = dict(os.environ, DEMO_ID_FILE=f"{folder}/id")
        ranks = [subprocess.Popen([sys.executable, __file__],
                                  env=dict(environment, DEMO_RANK=str(rank), RANK=str(rank),
                                           WORLD_SIZE=str(RANKS), LOCAL_RANK=str(rank)))
                 for rank in range(RANKS)]
        return max(abs(process.wait()) for process in ranks)


if __name__ == "__main__":
    sys.exit(main())
