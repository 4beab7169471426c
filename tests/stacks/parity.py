# SPDX-License-Identifier: Apache-2.0
"""Compares the frames that Rollcall, gdb and eu-stack find, thread by thread, address by address.

A frame of another tool counts if it and all inner ones are right: its address is the thread's own,
or follows a call instruction, or a signal interrupted it, or it is in code without a file, where
generated code may return to any place. A thread has "less" if gdb or eu-stack has right frames that
Rollcall lacks, else "more" if Rollcall has more frames than both.
"""
import bisect
import collections
import contextlib
import dataclasses
import pathlib
import re
import shutil
import subprocess

HERE = pathlib.Path(__file__).resolve().parent
SIGRETURN = bytes.fromhex("48c7c00f0000000f05")  # x86-64: mov $15, %rax; syscall
TRIES = 4


@dataclasses.dataclass
class Thread:
    name: str = ""
    frames: list = dataclasses.field(default_factory=list)  # addresses, innermost first
    names: dict = dataclasses.field(default_factory=dict)  # address -> function
    note: str = ""

    def add(self, address, name):
        self.frames.append(address)
        self.names[address] = name


def parse_frames(text):
    threads = {}
    thread = None  # before the first one, gdb prints where the process is
    for line in text.splitlines():
        word, _, rest = line.partition(" ")
        if word == "thread":
            tid, _, name = rest.partition(" ")
            thread = threads[int(tid)] = Thread(name)
        elif thread is None:
            continue
        elif word == "note":
            thread.note = rest
        elif re.fullmatch("0x[0-9a-f]+", word):
            thread.add(int(word, 16), rest)
    return threads


def parse_eu_stack(text):
    threads = {}
    for line in text.splitlines():
        if begin := re.match(r"TID (\d+):", line):
            thread = threads[int(begin[1])] = Thread()
        elif frame := re.match(r"#\d+\s+(0x[0-9a-f]+)(?:\s+-\s+1)?\s*(.*)", line):
            thread.add(int(frame[1], 16), frame[2])
    return threads


def run(command, seconds=300):
    return subprocess.run([str(word) for word in command], capture_output=True, text=True,
                          errors="replace", timeout=seconds, check=False).stdout


def take_ours(helper, pid):
    return parse_frames(run([helper, pid]))


def take_eu_stack(pid):
    return parse_eu_stack(run(["eu-stack", "-n", "0", "-p", pid]))


def take_gdb(pid):
    return parse_frames(run(["gdb", "-nx", "-batch", "-iex", "set debuginfod enabled off",
                             "-p", pid, "-x", HERE / "gdb_frames.py"]))


PEERS = {"eu-stack": take_eu_stack, "gdb": take_gdb}


def installed_peers():
    return {name: take for name, take in PEERS.items() if shutil.which(name)}


class Code:
    """The executable memory of a process."""

    def __init__(self, pid):
        self.memory = open(f"/proc/{pid}/mem", "rb", buffering=0)
        self.maps = []
        for line in pathlib.Path(f"/proc/{pid}/maps").read_text(errors="replace").splitlines():
            fields = line.split(maxsplit=5)
            start, end = (int(word, 16) for word in fields[0].split("-"))
            if "x" in fields[1]:
                self.maps.append((start, end, fields[5] if len(fields) > 5 else ""))

    def find(self, address):
        at = bisect.bisect_right(self.maps, (address, 1 << 64, "")) - 1
        return self.maps[at] if at >= 0 and address < self.maps[at][1] else None

    def read(self, address, size):
        try:
            self.memory.seek(address)
            return self.memory.read(size)
        except (OSError, ValueError):
            return b""

    def follows_call(self, address):
        code = self.read(address - 7, 7)
        if len(code) < 7:
            return False
        if code[2] == 0xe8:
            return True
        # call *REGISTER or *MEMORY: FF /2, of two to seven bytes.
        return any(code[-size] == 0xff and code[1 - size] >> 3 & 7 == 2 for size in range(2, 8))

    def is_trampoline(self, address):
        return self.read(address, len(SIGRETURN)) == SIGRETURN

    def is_right(self, frames, index):
        address = frames[index]
        mapped = self.find(address)
        if index == 0:
            return True
        if mapped is None:
            return False
        if self.is_trampoline(frames[index - 1]):
            return True
        return not mapped[2] or self.is_trampoline(address) or self.follows_call(address)


def lacking(ours, theirs, code):
    """The right frames of `theirs` that `ours` lacks."""
    left = collections.Counter(ours)
    lost = []
    for index, address in enumerate(theirs):
        if not code.is_right(theirs, index):
            break  # whatever follows is a guess that began with a wrong frame
        if left[address] > 0:
            left[address] -= 1
        else:
            lost.append(address)
    return lost


@dataclasses.dataclass
class Verdict:
    tid: int
    ours: Thread
    peers: dict  # name -> Thread
    lost: dict  # name -> addresses; only those with any
    moved: bool  # the thread ran while the tools looked, so their frames say nothing of each other

    @property
    def kind(self):
        if self.lost:
            return "less"
        best = max((len(thread.frames) for thread in self.peers.values()), default=0)
        return "more" if len(self.ours.frames) > best else "equal"

    def describe(self):
        lines = [f"thread {self.tid} {self.ours.name}: {self.kind}", f"  note: {self.ours.note}"]
        for name, thread in {"ours": self.ours, **self.peers}.items():
            lines.append(f"  {name}: {len(thread.frames)} frames")
            lost = self.lost.get(name, [])
            for address in thread.frames[:100]:
                mark = " <- lacking" if address in lost else ""
                lines.append(f"    {address:#x} {thread.names[address]}{mark}")
        return "\n".join(lines)


def is_alive(pid, tid):
    return pathlib.Path(f"/proc/{pid}/task/{tid}").exists()


def has_moved(before, after, peers):
    """Whether a thread ran while the tools looked: Rollcall shows other frames after the others looked
    than before, or one of them stopped it at another instruction."""
    if after.frames != before.frames:
        return True
    return any(before.frames[:1] != other.frames[:1] for other in peers if before.frames and other.frames)


def judge_once(helper, pid, peers):
    """The verdicts on all threads that anybody sees, by tid."""
    ours = take_ours(helper, pid)
    theirs = {name: take(pid) for name, take in peers.items()}
    after = take_ours(helper, pid)
    code = Code(pid)
    verdicts = {}
    for tid in sorted(set(ours).union(*theirs.values())):
        thread = ours.get(tid, Thread())
        if not is_alive(pid, tid):
            continue
        seen = {name: threads[tid] for name, threads in theirs.items() if tid in threads}
        moved = has_moved(thread, after.get(tid, Thread()), seen.values())
        lost = {name: lacking(thread.frames, other.frames, code) for name, other in seen.items()}
        lost = {name: found for name, found in lost.items() if found}
        verdicts[tid] = Verdict(tid, thread, seen, lost, moved)
    return verdicts


def judge(helper, pid, peers=None):
    """The verdicts on the threads of a process. If one lacks frames, all are judged again: it may have
    moved. A thread has "less" if it lacks frames in a half of the times when it stood still, or more."""
    peers = installed_peers() if peers is None else peers
    verdicts = collections.defaultdict(list)
    for _ in range(TRIES):
        for tid, verdict in judge_once(helper, pid, peers).items():
            verdicts[tid].append(verdict)
        if not any(verdict.lost for of_one in verdicts.values() for verdict in of_one):
            break
    chosen = []
    for of_one in verdicts.values():
        still = [verdict for verdict in of_one if not verdict.moved]
        bad = [verdict for verdict in still or of_one if verdict.lost]
        good = [verdict for verdict in still or of_one if not verdict.lost]
        is_less = not good or (still and len(bad) >= len(good))
        chosen.append(bad[-1] if is_less else good[-1])
    return chosen


def judge_all(helper, pids):
    """The verdicts on all threads of these processes, without those that have ended."""
    verdicts = []
    for pid in pids:
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            verdicts += judge(helper, pid)
    return verdicts
