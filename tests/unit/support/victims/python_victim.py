# SPDX-License-Identifier: Apache-2.0
"""A Python process whose threads stand in known places. Says "ready" and waits for its end.

The places are marked; the test looks up their lines by the marks.
"""

import contextlib
import ctypes
import json
import sys
import threading


def wait_in_a_generator():
    for value in (wait_for_ever(i) for i in range(1)):  # MARK generator
        yield value


def wait_for_ever(_):
    return never.acquire()  # MARK lock


def consume():
    return list(wait_in_a_generator())  # MARK consume


class Trainer:
    def validate(self):
        return (lambda: read_for_ever())()  # MARK lambda


def read_for_ever():
    return sys.stdin.buffer.raw.read(1)  # MARK read


def called_back(_):
    never.acquire()  # MARK callback
    return 0


def call_from_c():
    # C in between: qsort calls back into Python.
    compare = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
    items = (ctypes.c_int * 2)(2, 1)
    ctypes.CDLL(None).qsort(  # MARK qsort
        items, 2, 4, compare(lambda a, b: called_back(a)))


def grüße():
    never.acquire()  # MARK unicode


def recurse(depth):
    if depth == 0:
        return never.acquire()  # MARK deepest
    return recurse(depth - 1)  # MARK recursion


def hold_the_lock():
    # PyDLL calls C without releasing the lock: no other thread can run Python then.
    ctypes.PyDLL(None).pause()  # MARK held


def spin():
    while True:  # MARK spin
        pass


def run_in_a_subinterpreter():
    try:
        import _interpreters as interpreters
        create = lambda: interpreters.create("legacy")
    except ImportError:
        import _xxsubinterpreters as interpreters
        create = interpreters.create
    interpreters.run_string(create(), """
import threading
def wait_in_there():
    lock = threading.Lock()
    lock.acquire()
    lock.acquire()
wait_in_there()
""")


class LoadedThread(threading.Thread):
    """Has more attributes than threads share a table for, and somebody looked at its dict."""

    def run(self):
        for i in range(50):
            setattr(self, "attribute_%d" % i, i)
        vars(self)
        wait_as_loaded()


class LookedAtThread(threading.Thread):
    def run(self):
        vars(self)
        wait_as_looked_at()


def wait_as_loaded():
    never.acquire()


def wait_as_looked_at():
    never.acquire()


def wait_as_named():
    never.acquire()


def load_shard(number):
    raise ValueError("bad shard %d\nof the second part" % number)  # MARK raised


def wait_in_except():
    try:
        load_shard(3)
    except ValueError:
        never.acquire()


def wait_in_finally():
    try:
        {}["label"]  # MARK looked up
    finally:
        never.acquire()


class Waiting:
    def __enter__(self):
        pass

    def __exit__(self, *_):
        wait_in_exit()


def wait_in_exit():
    never.acquire()


def leave():
    with Waiting():
        open("/no/such/file")  # MARK opened


@contextlib.contextmanager
def waiting():
    try:
        yield
    finally:
        wait_in_generator_end()


def wait_in_generator_end():
    never.acquire()


def leave_a_generator():
    with waiting():
        json.loads("{")  # MARK parsed


def wait_with_a_long_text():
    """As long as the agent reads, the text ends in a password, and what follows shows that it is one."""
    try:
        raise ConnectionError("x" * 200 + " of postgresql://train:" + "S3cretPassw0rd" * 4 + "@db/runs")  # MARK refused
    except ConnectionError:
        never.acquire()


def wait_with_a_text_of_many_bytes():
    """It has fewer characters than the agent reads, and more bytes."""
    try:
        raise ValueError("\u58ca" * 200)  # MARK found broken
    except ValueError:
        never.acquire()


def wait_after_handling():
    try:
        load_shard(4)
    except ValueError:
        pass
    never.acquire()


def work(depth):
    return sum(work(depth - 1) for _ in range(2)) if depth > 0 else 1


def work_for_ever():
    while True:
        helper = threading.Thread(target=work, args=(3,))
        helper.start()
        work(6)
        helper.join()


never = threading.Lock()
never.acquire()
threads = {
    "generator": consume,
    "callback": call_from_c,
    "unicode": grüße,
    "recursion": lambda: recurse(200),
}
mode = sys.argv[1]
if mode == "recursion":
    sys.setrecursionlimit(20000)
    threading.stack_size(256 << 20)
    threads = {"deep": lambda: recurse(5000)}
if mode == "spin":
    threads = {"spin1": spin, "spin2": spin}
if mode == "subinterpreter":
    threads = {"within": run_in_a_subinterpreter}
if mode == "busy":
    threads = {"busy%d" % i: work_for_ever for i in range(4)}
if mode == "named":
    threads = {"prefetch of the räumlich data": wait_as_named}
    LoadedThread(name="loaded", daemon=True).start()
    LookedAtThread(name="looked at", daemon=True).start()
if mode == "handling":
    threads = {function.__name__: function for function in
               (wait_in_except, wait_in_finally, leave, leave_a_generator, wait_with_a_long_text,
                wait_with_a_text_of_many_bytes, wait_after_handling)}
    threading.Thread(target=wait_as_named, name="keeper").start()
for name, target in threads.items():
    threading.Thread(target=target, name=name, daemon=True).start()
print("ready", flush=True)
if mode == "held":
    hold_the_lock()
Trainer().validate()
