# SPDX-License-Identifier: Apache-2.0
"""The checks of transfers over the network that tests/gpu runs with real NCCL, with the simulated one; and what they do
to a machine: a thread that is held, a link that is cut."""
import contextlib
import json
import os
import pathlib
import subprocess
import sys
import threading
import time

import pytest
from conftest import BUILD, CLONE, long, wait_for

CHECKS = CLONE / "tests" / "gpu"
sys.path.insert(0, str(CHECKS))
import cut_link  # noqa: E402
import held_thread  # noqa: E402
import transfers  # noqa: E402

SLOW = {"kernel-spins-with-markers", "kernel-spins-a-moment", "proxy-is-held-at-work", "link-is-cut-a-moment"}


@pytest.mark.parametrize("name", [long(name) if name in SLOW else name for name in transfers.CHECKS])
def test_the_check_passes_with_the_simulated_nccl(name, tmp_path):
    done = subprocess.run([sys.executable, CHECKS / "run_checks.py", tmp_path, name], text=True, capture_output=True,
                          env={**os.environ, "ROLLCALL_GPU_SIM": str(BUILD)}, check=False)
    machine, result = map(json.loads, (tmp_path / "results.jsonl").read_text().splitlines())
    assert machine["machine"]["is_simulated"]
    if result["result"] == "skip":
        pytest.skip(result["why"])
    assert (done.returncode, result["check"], result["result"]) == (0, name, "pass"), done.stdout + done.stderr


def test_an_unknown_check_is_refused(tmp_path):
    done = subprocess.run([sys.executable, CHECKS / "run_checks.py", tmp_path, "no-such"], text=True,
                          capture_output=True, env={**os.environ, "ROLLCALL_GPU_SIM": str(BUILD)}, check=False)
    assert done.returncode == 2
    assert "kernel-spins" in done.stderr


# --- A thread that is held.

TWO_THREADS = """
import ctypes, threading, time
turns = [0, 0]
def turn(which, name):
    ctypes.CDLL(None).prctl(15, name, 0, 0, 0)
    while True:
        turns[which] += 1
        time.sleep(0.01)
threading.Thread(target=turn, args=(0, b"NCCL Progress 0"), daemon=True).start()
threading.Thread(target=turn, args=(1, b"other"), daemon=True).start()
while True:
    print(*turns, flush=True)
    time.sleep(0.1)
"""


def test_a_held_thread_stands_while_the_others_run_and_goes_on_when_it_is_released():
    if held_thread.lacks():
        pytest.skip(held_thread.lacks())
    process = subprocess.Popen([sys.executable, "-c", TWO_THREADS], stdout=subprocess.PIPE, text=True)

    def turns():
        return [int(turn) for turn in process.stdout.readline().split()]

    def turns_later():
        """Some lines later: of both threads, once the other one has run on."""
        begun = turns()[1]
        while (now := turns())[1] < begun + 20:
            pass
        return now

    try:
        while min(turns()) < 5:
            pass
        tid = held_thread.find_thread(process.pid, "NCCL Progress")
        held = held_thread.HeldThread(tid)
        turns_later()  # lines of before
        standing = turns_later()[0]
        assert turns_later()[0] == standing
        assert held_thread.state_of(process.pid, tid) == "S", "no tracer has it, and no signal has stopped it"
        held.release()
        while turns()[0] <= standing + 5:
            pass
    finally:
        process.kill()
        process.wait()


def test_the_thread_must_be_the_only_one_of_its_name():
    with pytest.raises(RuntimeError, match="has 0 threads no-such"):
        held_thread.find_thread(os.getpid(), "no-such")


# --- A link that is cut.

SENDS = """
import socket, sys, time
stream = socket.create_connection((sys.argv[1], int(sys.argv[2])))
while True:
    stream.sendall(b"x")
    time.sleep(0.01)
"""
RECEIVES = """
import socket, sys
server = socket.create_server((sys.argv[1], 0))
print(server.getsockname()[1], flush=True)
stream = server.accept()[0]
received = 0
while data := stream.recv(4096):
    received += len(data)
    print(received, flush=True)
"""


class Stream:
    """Bytes from side 0 to side 1, as they come."""

    def __init__(self, networks):
        python = [sys.executable, "-c"]
        self.receiver = subprocess.Popen([*networks.enter(1), *python, RECEIVES, cut_link.ADDRESSES[1]],
                                         stdout=subprocess.PIPE, text=True)
        port = self.receiver.stdout.readline().strip()
        self.sender = subprocess.Popen([*networks.enter(0), *python, SENDS, cut_link.ADDRESSES[1], port])
        self.received = 0
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for line in self.receiver.stdout:
            self.received = int(line)

    def wait_for_more(self):
        before = self.received
        wait_for(lambda: self.received > before + 5)

    def end(self):
        for process in (self.sender, self.receiver):
            process.kill()
            process.wait()


@pytest.mark.parametrize("way", cut_link.WAYS)
def test_a_cut_link_carries_nothing_and_a_restored_one_all(way):
    try:
        networks = cut_link.TwoNetworks(way)
    except cut_link.Lacking as lacking:
        pytest.skip(str(lacking))
    with networks:
        stream = Stream(networks)
        try:
            stream.wait_for_more()
            try:
                networks.cut()
            except cut_link.Lacking as lacking:
                pytest.skip(str(lacking))
            time.sleep(0.5)  # what was under way
            standing = stream.received
            time.sleep(2)
            assert stream.received == standing
            assert stream.sender.poll() is None, "the sender is not told"
            networks.restore()
            stream.wait_for_more()
        finally:
            stream.end()


def test_what_the_namespaces_need_is_said():
    """As another user, whom the kernel lets make none."""
    code = f"import sys; sys.path.insert(0, {str(CHECKS)!r})\nimport os; os.geteuid = lambda: 1000\n" \
           "import cut_link\ntry:\n    cut_link.TwoNetworks()\nexcept cut_link.Lacking as lacking:\n    print(lacking)"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert said == "network namespaces need root\n"


def namespaces_of_networks():
    """In which some process of this machine is."""
    found = set()
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has ended
            found.add(os.readlink(process / "ns" / "net"))
    return found


def test_no_namespace_of_a_check_stays():
    try:
        networks = cut_link.TwoNetworks()
    except cut_link.Lacking as lacking:
        pytest.skip(str(lacking))
    own = {os.readlink(f"/proc/{holder.pid}/ns/net") for holder in networks.holders}
    assert len(own) == 2 and own <= namespaces_of_networks()
    networks.close()
    assert not own & namespaces_of_networks()
