# SPDX-License-Identifier: Apache-2.0
"""Ranks that wait outside of NCCL: for a process, a thread, a lock, a file, a pipe or another rank."""

import concurrent.futures
import fcntl
import http.server
import pathlib
import queue
import subprocess
import sys
import threading
import time
import urllib.request

import torch
import torch.distributed as dist
from common import WIDTH, batches, main, make_network, program
from torch.nn.parallel import DistributedDataParallel

mse = torch.nn.functional.mse_loss
WORK_SECONDS = 20


def make_ddp():
    model = DistributedDataParallel(make_network())
    return model, torch.optim.SGD(model.parameters(), lr=0.01)


def train(model, optimizer, rank, number):
    for inputs, targets in batches(number, rank):
        optimizer.zero_grad()
        mse(model(inputs), targets).backward()
        optimizer.step()


def find_duplicates(seconds):
    end, seen = time.monotonic() + seconds, set()
    while time.monotonic() < end:
        seen.add(hash(str(len(seen))))
    return len(seen)


@program
def duplicates_are_sought(args):
    """Healthy: rank 2 has its worker processes look for duplicates, which takes long."""
    model, optimizer = make_ddp()
    train(model, optimizer, args.rank, 4)
    if args.rank == 2:
        with concurrent.futures.ProcessPoolExecutor(2) as pool:
            parts = [pool.submit(find_duplicates, 0.5 if args.fixed else WORK_SECONDS) for _ in range(2)]
            print(sum(part.result() for part in parts), flush=True)  # hangs: duplicates_are_sought
    train(model, optimizer, args.rank, 4)


def build_kernels(work, stuck):
    makefile = pathlib.Path(work, "build.sh")
    makefile.write_text(f"echo compiling\nsleep {600 if stuck else 0.1}\necho linked\n")
    return subprocess.run(["sh", makefile], check=True, capture_output=True).stdout  # hangs: builds_kernels


@program
def builds_kernels(args):
    """Rank 1 builds its kernels in a process that does not come to its end."""
    model, optimizer = make_ddp()
    train(model, optimizer, args.rank, 4)
    if args.rank == 1:
        build_kernels(args.work, stuck=not args.fixed)
    train(model, optimizer, args.rank, 4)


class Scores(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_):
        pass


def post_score(work, step):
    address = pathlib.Path(work, "port")
    while not address.exists():
        time.sleep(0.02)
    url = f"http://127.0.0.1:{address.read_text()}/score"
    with urllib.request.urlopen(url, data=b"%d" % step, timeout=900):  # hangs: posts_twice
        pass


def take_scores(server, args):
    if server is not None:
        for _ in range(args.ranks - 1):
            server.handle_request()


@program
def posts_twice(args):
    """Each rank posts a score to rank 0, which takes one of each rank in a step. Rank 3 posts twice."""
    server = None
    if args.rank == 0:
        server = http.server.HTTPServer(("127.0.0.1", 0), Scores)
        unfinished = pathlib.Path(args.work, "port.new")
        unfinished.write_text(str(server.server_port))
        unfinished.rename(pathlib.Path(args.work, "port"))
    for step in range(12):
        take_scores(server, args)
        if args.rank > 0:
            post_score(args.work, step)
        dist.all_reduce(torch.ones(WIDTH))
        if step == 7 and args.rank == 3 and not args.fixed:
            time.sleep(0.5)  # the others have posted the next one
            post_score(args.work, step)


class Journal:
    """A thread writes lines; it holds the lock meanwhile."""

    def __init__(self):
        self.lock, self.lines = threading.Lock(), queue.Queue()
        threading.Thread(target=self.write, daemon=True).start()

    def write(self):
        while True:
            line = self.lines.get()
            with self.lock:
                while line != "end of block":
                    line = self.lines.get()

    def rotate(self):
        with self.lock:  # hangs: journal_keeps_its_lock
            pass


@program
def journal_keeps_its_lock(args):
    """Rank 1 needs the lock that its writer keeps until the end of a block, which was not written."""
    model, optimizer = make_ddp()
    journal = Journal()
    for number in range(8):
        train(model, optimizer, args.rank, 1)
        journal.lines.put(f"step {number}")
        if number != 5 or args.rank != 1 or args.fixed:
            journal.lines.put("end of block")
        time.sleep(0.05)
        journal.rotate()


def encode(pool, texts, nested):
    if nested:
        return sum(pool.map(len, texts))
    return sum(map(len, texts))


@program
def pool_waits_for_itself(args):
    """The only thread of a pool of rank 0 waits for a task that it would have to run itself."""
    model, optimizer = make_ddp()
    pool = concurrent.futures.ThreadPoolExecutor(1)
    for number in range(8):
        nested = number == 5 and args.rank == 0 and not args.fixed
        encoded = pool.submit(encode, pool, ["a", "bc"], nested)
        encoded.result()  # hangs: pool_waits_for_itself
        train(model, optimizer, args.rank, 1)


def prepare_cache(args):
    """Under a lock, as two ranks share a node's cache."""
    held = pathlib.Path(args.work, "held")
    while args.rank != 0 and not held.exists():
        time.sleep(0.02)
    with open(f"{args.work}/cache.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # hangs: meets_under_a_lock
        held.touch()
        if not args.fixed:
            dist.barrier()
    if args.fixed:
        dist.barrier()


@program
def meets_under_a_lock(args):
    """Ranks 0 and 2 share a cache. Rank 0 meets the others before it gives the lock back."""
    model, optimizer = make_ddp()
    train(model, optimizer, args.rank, 4)
    if args.rank == 1:
        dist.barrier()
    else:
        prepare_cache(args)


def wait_for_file(file):
    while not file.exists():
        time.sleep(0.5)  # hangs: file_comes_after_the_barrier


@program
def file_comes_after_the_barrier(args):
    """Rank 0 writes the index after a barrier, at which ranks 2 and 3 come after they have seen it."""
    model, optimizer = make_ddp()
    train(model, optimizer, args.rank, 4)
    index = pathlib.Path(args.work, "index")
    if args.fixed and args.rank == 0:
        index.touch()
    if args.rank >= 2:
        wait_for_file(index)
    dist.barrier()
    if args.rank == 0:
        index.touch()
    train(model, optimizer, args.rank, 4)


TOKENIZER = "import sys\nfor line in sys.stdin: print(len(line), flush=True)"


def count_tokens(tokenizer, text, flush):
    print(text, file=tokenizer.stdin, flush=flush)
    return int(tokenizer.stdout.readline())  # hangs: words_stay_in_a_buffer


@program
def words_stay_in_a_buffer(args):
    """Rank 2 does not flush what it writes to its tokenizer, and reads: each waits for the other."""
    model, optimizer = make_ddp()
    with subprocess.Popen([sys.executable, "-c", TOKENIZER], text=True, stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE) as tokenizer:
        for number in range(8):
            flush = number != 5 or args.rank != 2 or args.fixed
            count_tokens(tokenizer, "a few words", flush)
            train(model, optimizer, args.rank, 1)
        tokenizer.stdin.close()


if __name__ == "__main__":
    main()
