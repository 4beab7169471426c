# SPDX-License-Identifier: Apache-2.0
"""Programs on gloo that throw, fork and end in odd ways: without a hang, and the same with Rollcall.

    ends.py PROGRAM      a rank of it, as the environment says
"""

import datetime
import os
import signal
import sys
import time

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader

SOON = datetime.timedelta(seconds=1)
BRIEFLY = datetime.timedelta(milliseconds=300)


def say(*words):
    """One write, so that lines of two ranks do not mix."""
    os.write(1, (" ".join(map(str, words)) + "\n").encode())


def told(error):
    """The class of an exception, and how it begins: addresses and times differ from run to run."""
    return f"{type(error).__name__}: {str(error)[:24]}"


def catches_a_timeout(rank):
    """One rank waits alone; gloo throws, and the rank goes on in another group."""
    alone, together = dist.new_group(timeout=SOON), dist.new_group()
    if rank == 0:
        try:
            dist.all_reduce(torch.ones(4), group=alone)
        except RuntimeError as error:
            say("caught", type(error).__name__)
    total = torch.ones(4)
    dist.all_reduce(total, group=together)
    say(total.tolist())


def does_not_catch_a_timeout(rank):
    alone = dist.new_group(timeout=SOON)
    if rank == 0:
        dist.all_reduce(torch.ones(4), group=alone)


def fails_a_monitored_barrier(rank):
    together = dist.new_group()
    if rank == 0:
        try:
            dist.monitored_barrier(timeout=SOON)
        except RuntimeError as error:
            say(told(error))
    dist.barrier(group=together)


def gives_wrong_arguments(rank):
    for wrong in (lambda: dist.all_reduce(torch.ones(2, 2).to_sparse_csr()),
                  lambda: dist.broadcast(torch.ones(4), src=7),
                  lambda: dist.all_gather([torch.empty(3)], torch.ones(4)),
                  lambda: dist.reduce(torch.ones(4), dst=7)):
        try:
            wrong()
        except (RuntimeError, ValueError, TypeError) as error:
            say(told(error))
            continue
        say("fine")
    dist.barrier()


def times_out_in_a_receive(rank):
    pair = dist.new_group(timeout=SOON)
    if rank == 1:
        try:
            dist.recv(torch.empty(4), 0, group=pair)
        except RuntimeError as error:
            say("caught", type(error).__name__)
    dist.barrier()


def loads_in_forked_workers(rank):
    for batch in DataLoader(torch.arange(12.0), batch_size=3, num_workers=2):
        dist.all_reduce(batch)
        say(batch.tolist())


def destroys_with_an_open_call(rank):
    work = dist.all_reduce(torch.ones(1 << 20), async_op=True)
    dist.destroy_process_group()
    say(work.is_completed())
    os._exit(0)


def asks_a_store_again(rank):
    """One rank takes its time; the other polls, then waits for a moment again and again."""
    store = dist.distributed_c10d._get_default_store()
    tries = 0
    if rank == 0:
        time.sleep(3)
        store.set("first", "yes")
        store.set("second", "yes")
    while rank == 1 and not store.check(["first"]):
        time.sleep(0.05)
    while rank == 1:
        try:
            store.wait(["second"], BRIEFLY)
            break
        except RuntimeError:
            tries += 1
    say(store.get("second"), tries < 2)
    dist.barrier()


def times_out_in_a_store(rank):
    """In a TCPStore, and in a FileStore by two ways; then the rank goes on."""
    file = dist.FileStore(f"/tmp/rollcall-store-{os.environ['MASTER_PORT']}", 2)
    file.set_timeout(BRIEFLY)
    for wait in (lambda: dist.distributed_c10d._get_default_store().wait(["never", "ever"], BRIEFLY),
                 lambda: file.wait(["never"], BRIEFLY), lambda: file.get("never")):
        try:
            wait()
        except RuntimeError as error:
            say(type(error).__name__)
    dist.barrier()


def ends_by_os_exit(rank):
    dist.barrier()
    os._exit(7)


def raises_in_the_loop(rank):
    for step in range(4):
        if step == 3 and rank == 1:
            raise KeyError("label")
        try:
            dist.all_reduce(torch.ones(4))
        except RuntimeError:
            say("lost a rank")
            os._exit(0)


def is_killed(rank):
    dist.barrier()
    if rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    try:
        dist.all_reduce(torch.ones(4))
    except RuntimeError:
        say("lost a rank")
    os._exit(0)


def is_stopped_for_a_while(rank):
    if rank == 1:
        stopped, child = os.getpid(), os.fork()
        if child == 0:
            time.sleep(0.5)
            os.kill(stopped, signal.SIGCONT)
            os._exit(0)
        os.kill(stopped, signal.SIGSTOP)
        os.waitpid(child, 0)
    total = torch.ones(4)
    dist.all_reduce(total)
    say(total.tolist())


if __name__ == "__main__":
    dist.init_process_group("gloo")
    own = dist.get_rank()
    globals()[sys.argv[1]](own)
    if dist.is_initialized():
        dist.destroy_process_group()
    say("rank", own, "done")
