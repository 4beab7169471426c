# SPDX-License-Identifier: Apache-2.0
"""Stands in for the CUDA driver in a rank: the named pipe by which it is asked for a core dump of its GPU, and the
file that it then writes, as NVIDIA's manual of cuda-gdb has them. There is no GPU."""

import os
import pathlib
import threading


def _expanded(template):
    return template.replace("%p", str(os.getpid()))


def _answer(requests, file):
    while os.read(requests, 1):
        pathlib.Path(file).write_bytes(b"\x7fELF core dump of a GPU")


def start():
    """Nothing, unless the environment switches dumps on."""
    if os.environ.get("CUDA_ENABLE_USER_TRIGGERED_COREDUMP") != "1":
        return
    pipe = _expanded(os.environ["CUDA_COREDUMP_PIPE"])
    os.mkfifo(pipe, 0o600)
    requests = os.open(pipe, os.O_RDWR)
    if os.environ.get("GPU_DRIVER_IS_SILENT"):
        return
    file = _expanded(os.environ["CUDA_COREDUMP_FILE"])
    threading.Thread(target=_answer, args=(requests, file), name="cuda-EvtHandlr", daemon=True).start()
