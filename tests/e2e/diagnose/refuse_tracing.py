# SPDX-License-Identifier: Apache-2.0
"""refuse_tracing.py CMD...: runs CMD under a filter by which the kernel refuses ptrace and the memory of others."""

import ctypes
import errno
import os
import platform
import struct
import sys

CALLS = {"x86_64": (101, 310), "aarch64": (117, 270)}[platform.machine()]  # ptrace, process_vm_readv
PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS, MODE_FILTER = 22, 38, 2
LOAD, JUMP_EQUAL, RETURN = 0x20, 0x15, 0x06
ALLOW, FAIL = 0x7FFF0000, 0x00050000


class Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_void_p)]


def statement(code, value, then=0, otherwise=0):
    return struct.pack("=HBBI", code, then, otherwise, value)


lines = [statement(LOAD, 0)]
for at, call in enumerate(CALLS):
    lines.append(statement(JUMP_EQUAL, call, then=len(CALLS) - at))
lines += [statement(RETURN, ALLOW), statement(RETURN, FAIL | errno.EPERM)]
code = ctypes.create_string_buffer(b"".join(lines))
program = Program(len(lines), ctypes.cast(code, ctypes.c_void_p))
libc = ctypes.CDLL(None, use_errno=True)
if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or libc.prctl(PR_SET_SECCOMP, MODE_FILTER, ctypes.byref(program), 0, 0):
    sys.exit(f"no filter: {os.strerror(ctypes.get_errno())}")
os.execvp(sys.argv[1], sys.argv[1:])
