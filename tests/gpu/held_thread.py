# SPDX-License-Identifier: Apache-2.0
"""Holds one thread of a process while the others run on: its next system call becomes pause(), and then the tracer
leaves. A thread that stays traced would have no stack for any other tracer. x86-64."""
import contextlib
import ctypes
import os
import pathlib
import platform
import signal
import time

# <sys/ptrace.h>, <sys/user.h>, <asm/unistd_64.h>
GETREGS, SETREGS, DETACH, SYSCALL = 12, 13, 17, 24
SEIZE, INTERRUPT, TRACESYSGOOD = 0x4206, 0x4207, 1
RAX, ORIG_RAX, RIP, REGISTERS = 10, 15, 16, 27
PAUSE, NONE = 34, 2**64 - 1
WALL = 0x40000000
AT_SYSTEM_CALL = signal.SIGTRAP | 0x80

LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
LIBC.ptrace.restype = ctypes.c_long


def lacks():
    """What this machine lacks to hold a thread, or ""."""
    if platform.machine() != "x86_64":
        return f"threads are held on x86-64 only, and this is {platform.machine()}"
    scope = pathlib.Path("/proc/sys/kernel/yama/ptrace_scope")
    if os.geteuid() != 0 and scope.exists() and scope.read_text().strip() != "0":
        return "to trace another process it needs root, or kernel.yama.ptrace_scope=0"
    return ""


def find_thread(pid, name):
    """The number of the only thread whose name begins so."""
    names = {}
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(OSError):  # it has ended
            names[int(task.name)] = (task / "comm").read_text().strip()
    found = [tid for tid, its in names.items() if its.startswith(name)]
    if len(found) != 1:
        raise RuntimeError(f"process {pid} has {len(found)} threads {name}: {sorted(set(names.values()))}")
    return found[0]


def state_of(pid, tid):
    """R, S, T, t, ..."""
    return pathlib.Path(f"/proc/{pid}/task/{tid}/stat").read_text().rpartition(")")[2].split()[0]


def ptrace(request, tid, data=None, address=None):
    if LIBC.ptrace(request, tid, address, data) != 0:
        raise OSError(ctypes.get_errno(), f"ptrace {request:#x} of thread {tid}: {os.strerror(ctypes.get_errno())}")


def wait_for_stop(tid, seconds=20):
    """How it has stopped."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        pid, status = os.waitpid(tid, os.WNOHANG | WALL)
        if pid == tid and os.WIFSTOPPED(status):
            return os.WSTOPSIG(status)
        if pid == tid:
            raise RuntimeError(f"thread {tid} has ended")
        time.sleep(0.001)
    raise RuntimeError(f"thread {tid} did not stop within {seconds} s: it makes no system call")


@contextlib.contextmanager
def traced(tid):
    """Stopped meanwhile."""
    ptrace(SEIZE, tid, data=TRACESYSGOOD)
    ptrace(INTERRUPT, tid)
    wait_for_stop(tid)
    try:
        yield
    finally:
        with contextlib.suppress(OSError):  # its process may have ended
            ptrace(DETACH, tid)


def run_to_system_call(tid):
    """Passes on the signals that come before."""
    signal_number = 0
    while True:
        ptrace(SYSCALL, tid, data=signal_number)
        stop = wait_for_stop(tid)
        if stop == AT_SYSTEM_CALL:
            return
        signal_number = 0 if stop == signal.SIGTRAP else stop


class HeldThread:
    def __init__(self, tid):
        self.tid = tid
        with traced(tid):
            run_to_system_call(tid)
            registers = (ctypes.c_uint64 * REGISTERS)()
            ptrace(GETREGS, tid, data=registers)
            self.call = registers[ORIG_RAX]
            registers[ORIG_RAX] = PAUSE
            ptrace(SETREGS, tid, data=registers)

    def release(self):
        """It makes the system call that it was to make."""
        with traced(self.tid):
            registers = (ctypes.c_uint64 * REGISTERS)()
            ptrace(GETREGS, self.tid, data=registers)
            registers[RAX], registers[ORIG_RAX] = self.call, NONE
            registers[RIP] -= 2  # of the instruction `syscall`
            ptrace(SETREGS, self.tid, data=registers)
