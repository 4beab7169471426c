# SPDX-License-Identifier: Apache-2.0
"""Python programs that call NCCL by ctypes, and do odd things."""
import ctypes
import faulthandler
import os
import signal
import sys
import tempfile
import threading

nccl = ctypes.CDLL(os.environ["HOSTILE_NCCL"], use_errno=True)


class Id(ctypes.Structure):
    _fields_ = [("internal", ctypes.c_char * 128)]


nccl.ncclCommInitRank.argtypes = [ctypes.POINTER(ctypes.c_void_p), ctypes.c_int, Id, ctypes.c_int]
nccl.ncclAllReduce.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int,
                               ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p]


def work():
    new_id, comm = Id(), ctypes.c_void_p()
    assert nccl.ncclGetUniqueId(ctypes.byref(new_id)) == 0
    assert nccl.ncclCommInitRank(ctypes.byref(comm), 2, new_id, 0) == 0
    for _ in range(10):
        ctypes.set_errno(4711)
        assert nccl.ncclAllReduce(None, None, 8, 7, 0, comm, None) == 0
        assert ctypes.get_errno() == 4711


def in_threads(count, function):
    threads = [threading.Thread(target=function) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def forks_in_threads():
    def fork():
        child = os.fork()
        if child == 0:
            work()
            os._exit(3)
        assert os.waitpid(child, 0)[1] == 3 << 8

    work()
    in_threads(4, fork)
    in_threads(4, work)


def subinterpreters():
    try:
        import _interpreters as interpreters  # since Python 3.13
    except ImportError:
        import _xxsubinterpreters as interpreters
    work()
    for _ in range(3):
        one = interpreters.create()
        interpreters.run_string(one, "import sys; before = sys.excepthook")
        work()
        interpreters.run_string(one, "assert sys.excepthook is sys.__excepthook__")
        interpreters.destroy(one)


def dumps_traces():
    with tempfile.TemporaryFile("w+") as traces:
        faulthandler.enable(file=traces)
        faulthandler.register(signal.SIGUSR1, file=traces)
        work()
        os.kill(os.getpid(), signal.SIGUSR1)
        work()
        traces.seek(0)
        print([line.split("0x")[0] for line in traces])


def dies_with_a_trace():
    faulthandler.enable(file=open(os.devnull, "w"))
    work()
    print("dies", flush=True)
    os.kill(os.getpid(), signal.SIGABRT)


def takes_signals():
    taken = []
    for number in (signal.SIGALRM, signal.SIGRTMAX, signal.SIGQUIT, signal.SIGINT):
        signal.signal(number, lambda number, frame: taken.append(int(number)))
    work()
    for number in (signal.SIGRTMAX, signal.SIGQUIT, signal.SIGINT):
        os.kill(os.getpid(), number)
    print(taken)
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def ends_with_an_exception():
    work()
    raise ValueError("ends so")


def has_its_own_hook():
    sys.excepthook = lambda *what: print("hook", what[0].__name__, what[1])
    work()
    raise KeyError("ends so")


def looks_at_its_hook():
    for _ in range(3):
        work()
        print(sys.excepthook is sys.__excepthook__)


looks_at_its_hook_unwatched = looks_at_its_hook


def works_at_exit():
    import atexit
    atexit.register(work)
    work()
    sys.exit(5)


def spawns():
    import multiprocessing
    work()
    context = multiprocessing.get_context("fork")
    children = [context.Process(target=work) for _ in range(3)]
    for child in children:
        child.start()
    for child in children:
        child.join()
    print([child.exitcode for child in children])


def ends_with_a_daemon_thread():
    def for_ever():
        while True:
            work()

    work()
    threading.Thread(target=for_ever, daemon=True).start()


globals()[sys.argv[1]]()
print(sys.argv[1], "ends")
