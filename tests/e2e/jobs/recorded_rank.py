# SPDX-License-Identifier: Apache-2.0
"""Ranks whose calls only a Flight Recorder knows: it is asked by the pipe, and answers by the dump, that PyTorch has.

    recorded_rank.py CALLS...

Starts a rank for each number, which says how many all-reduces its recorder shows. If the numbers differ, the ranks
with most of them wait in the last one. All stand at one line, so their stacks show nothing.
"""

import ctypes
import json
import os
import pathlib
import queue
import select
import signal
import subprocess
import sys
import threading
import time

import gpu_driver


def entry(number, done, seconds):
    now = time.time_ns() - int(seconds * 1e9)
    return {"record_id": number, "pg_id": 0, "process_group": ["0", "default_pg"], "collective_seq_id": number + 1,
            "p2p_seq_id": 0, "op_id": number + 1, "profiling_name": "nccl:all_reduce", "time_created_ns": now,
            "input_sizes": [[16]], "input_dtypes": ["Float"], "output_sizes": [[16]], "output_dtypes": ["Float"],
            "state": "completed" if done else "scheduled", "time_discovered_started_ns": 0,
            "time_discovered_completed_ns": now if done else 0, "retired": done, "timeout_ms": 600000, "is_p2p": False}


def dump(rank, calls, most, begun):
    done = calls if calls < most else most - 1
    config = {"0": {"name": "0", "desc": "default_pg", "ranks": str(list(range(int(os.environ["WORLD_SIZE"]))))}}
    return {"version": "2.10", "pg_config": config, "pg_status": {},
            "entries": [entry(number, number < done, time.monotonic() - begun) for number in range(calls)]}


def answer(rank, calls, most, begun, pipe):
    requests = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)  # as PyTorch opens it
    select.select([requests], [], [])
    if os.read(requests, 1):
        file = os.environ.get("TORCH_FR_DUMP_TEMP_FILE") or os.environ["TORCH_NCCL_DEBUG_INFO_TEMP_FILE"]
        pathlib.Path(f"{file}{rank}").write_text(json.dumps(dump(rank, calls, most, begun)))


def be_a_rank(calls, most):
    rank, begun = int(os.environ["RANK"]), time.monotonic()
    gpu_driver.start()
    prefix = os.environ.get("TORCH_NCCL_DEBUG_INFO_PIPE_FILE")
    if prefix:
        os.mkfifo(f"{prefix}{rank}.pipe")
        recorder = (rank, calls, most, begun, f"{prefix}{rank}.pipe")
        threading.Thread(target=answer, args=recorder, name="pt_nccl_heartbt", daemon=True).start()
    queue.Queue().get()


def end_with_parent():
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)


def main():
    counts = list(map(int, sys.argv[1:]))
    if "RANK" in os.environ:
        most = max(counts) + (min(counts) == max(counts))
        be_a_rank(counts[int(os.environ["RANK"])], most)
        return
    size = str(len(counts))
    ranks = [subprocess.Popen([sys.executable, *sys.argv], preexec_fn=end_with_parent,
                              env=dict(os.environ, RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=size))
             for rank in range(len(counts))]
    signal.signal(signal.SIGTERM, lambda *_: [rank.kill() for rank in ranks])
    for rank in ranks:
        rank.wait()


if __name__ == "__main__":
    main()
