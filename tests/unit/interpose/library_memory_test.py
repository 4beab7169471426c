# SPDX-License-Identifier: Apache-2.0
"""The memory of segments: the library never takes room that the job or NCCL needs, never uses
another process's segment, and survives a truncated file."""
import fcntl
import json
import os
import pathlib
import signal
import struct
import subprocess
import sys
import time

import pytest

LIBRARY = os.environ["ROLLCALL_LIBRARY"]
STUBS = os.environ["ROLLCALL_STUB_DIR"]
STEPS = os.environ["LIBRARY_STEPS"]
ROOT = pathlib.Path(__file__).parents[3]
MIB = 1 << 20

# Prints what a segment holds, as it lies there.
DUMP = r"""
#include "interpose/segment.h"
#include <cstdio>
#include <cstdlib>
#include <vector>
using namespace rollcall::segment;
int main(int, char** argv) {
  std::FILE* file = std::fopen(argv[1], "rb");
  std::vector<uint64_t> words(kMappedBytes / 8 + 1);
  if (std::fread(words.data(), 1, kMappedBytes, file) < sizeof(SegmentHeader)) return 1;
  char* bytes = reinterpret_cast<char*>(words.data());
  auto* h = reinterpret_cast<SegmentHeader*>(bytes);
  std::printf("{\"magic\": %d, \"pid\": %d, \"namespace\": %llu, \"life_lock\": %u, "
              "\"left_out\": %u, \"lost_communicators\": %llu, \"comms\": [",
              h->magic.load() == kMagic, h->pid, (unsigned long long)h->pid_namespace,
              h->life_lock.load(), h->left_out.load(),
              (unsigned long long)h->lost_communicators.load());
  for (uint32_t i = 0; i < h->comm_count.load(); ++i) {
    char* block = bytes + CommBlockOffset(i);
    auto* e = reinterpret_cast<CommEntry*>(block);
    auto* lanes = reinterpret_cast<MarkerLane*>(block + kMarkersOffset);
    auto* ring = reinterpret_cast<RecordEntry*>(block + kRingOffset);
    uint64_t marked = 0;
    for (uint32_t lane = 0; lane < kMarkerLanes; ++lane) marked += lanes[lane].started.load();
    uint32_t records = 0;
    for (uint32_t n = 0; n < kRingCapacity; ++n) records += ring[n].seq.load() != 0;
    std::printf("%s{\"state\": %u, \"flags\": %u, \"entered\": %llu, \"ring_capacity\": %u, "
                "\"marked\": %llu, \"records\": %u}", i == 0 ? "" : ", ", e->state.load(),
                e->flags.load(), (unsigned long long)e->entered.load(), e->ring_capacity.load(),
                (unsigned long long)marked, records);
  }
  std::puts("]}");
}
"""
DESTROYED, READY = 5, 2
FLAG_RING = 4


@pytest.fixture(scope="session")
def dump(tmp_path_factory):
    """dump(path) -> the content of the segment"""
    folder = tmp_path_factory.mktemp("dump")
    (folder / "dump.cc").write_text(DUMP)
    subprocess.run(["c++", "-std=c++17", f"-I{ROOT}", "-o", folder / "dump", folder / "dump.cc"],
                   check=True)

    def read(path):
        return json.loads(subprocess.run([folder / "dump", path], check=True, capture_output=True,
                                         text=True).stdout)

    return read


def environment(folder=None, **more):
    env = {"LD_PRELOAD": LIBRARY, "LD_LIBRARY_PATH": STUBS, "PATH": os.environ["PATH"], **more}
    return {**env, "ROLLCALL_DIR": str(folder)} if folder else env


@pytest.fixture
def segments(tmp_path):
    folder = tmp_path / "segments"
    folder.mkdir(mode=0o700)
    return folder


@pytest.fixture
def on_tmpfs(tmp_path):
    """on_tmpfs(mib, script, where) runs the script with a file system of that size, in a mount
    namespace of its own, and returns what it printed as words in lines."""
    if subprocess.run(["unshare", "-m", "true"], capture_output=True).returncode != 0:
        pytest.skip("only root may mount")

    def run(size, script, where="/dev/shm"):
        whole = f"""
            set -e
            mount -t tmpfs -o size={size},mode=1777 tmpfs {where}
            run() {{ env LD_PRELOAD={LIBRARY} LD_LIBRARY_PATH={STUBS} "$@"; }}
            free() {{ stat -f -c '%a %S' {where}; }}
            {script}
        """
        return subprocess.run(["unshare", "-m", "bash", "-c", whole], capture_output=True,
                              text=True, timeout=120)

    return run


def test_eight_ranks_in_a_pod_leave_three_quarters_of_its_shared_memory(on_tmpfs, tmp_path, dump):
    steps = "id " + "init=2,0 " * 250 + "all_reduce"
    done = on_tmpfs("64m", f"""
        for rank in 0 1 2 3 4 5 6 7; do
          RANK=$rank run {STEPS} {steps} & pids="$pids $!"
        done
        for pid in $pids; do wait $pid; done
        free
        cp -r /dev/shm/rollcall-0 {tmp_path}/copies
        dd if=/dev/zero of=/dev/shm/of-the-job bs=1M count=30 status=none
        echo written
    """)
    assert done.returncode == 0, done.stderr
    free, written = done.stdout.splitlines()
    blocks, size = map(int, free.split())
    assert blocks * size >= 48 * MIB
    assert written == "written"
    copies = [dump(path) for path in (tmp_path / "copies").iterdir()]
    assert len(copies) == 8
    # The last one is there with its first communicators.
    assert all(len(copy["comms"]) >= 8 for copy in copies)
    said = done.stderr.splitlines()
    assert len(said) == 8, "each process says once what it leaves out"
    for rank in range(8):
        own = [line for line in said if line.startswith(f"rollcall[rank {rank}, ")]
        assert len(own) == 1
        assert "recording less, training unaffected: /dev/shm/rollcall-0 has " in own[0]


def test_without_room_beside_nccls_there_is_no_segment(on_tmpfs):
    done = on_tmpfs("64m", f"""
        head -c 31M /dev/zero > /dev/shm/of-nccl
        run {STEPS} id init=2,0 all_reduce init=2,0 all_reduce
        ls -A /dev/shm/rollcall-0
    """)
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr.count("\n") == 1
    assert "not recording, training unaffected: no room for /dev/shm/rollcall-0/" in done.stderr
    assert "(33 MiB free)" in done.stderr


def test_less_room_costs_first_the_length_of_histories_then_these_then_communicators(
        on_tmpfs, segments, dump, tmp_path):
    copy = tmp_path / "copy.seg"
    steps = "id " + "init=2,0 many=100 " * 60
    done = on_tmpfs("1m", f"""
        ROLLCALL_DIR={segments} run {STEPS} {steps}
        cp {segments}/*.seg {copy}
    """, where=segments)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("\n") == 1
    assert "has 0 MiB free: shorter histories" in done.stderr
    segment = dump(copy)
    comms = segment["comms"]
    long = [c for c in comms if c["flags"] & FLAG_RING and c["ring_capacity"] == 0]
    short = [c for c in comms if c["flags"] & FLAG_RING and c["ring_capacity"] == 64]
    none = [c for c in comms if not c["flags"] & FLAG_RING]
    assert long and short and none and len(long) + len(short) + len(none) == len(comms)
    assert comms == long + short + none, "in that order"
    assert {c["entered"] for c in comms} == {100}, "what is counted does not suffer"
    assert {c["records"] for c in long} == {100}
    assert {c["records"] for c in short} == {64}
    assert {c["records"] for c in none} == {0}
    assert segment["left_out"] == 1 | 2 | 4
    assert segment["lost_communicators"] == 60 - len(comms)


def test_without_room_a_new_communicator_takes_the_place_of_an_ended_one(on_tmpfs, segments, dump,
                                                                         tmp_path):
    copy = tmp_path / "copy.seg"
    steps = "id " + "init=2,0 all_reduce destroy " * 100 + "init=2,0 all_reduce all_reduce"
    done = on_tmpfs("1m", f"""
        ROLLCALL_DIR={segments} run {STEPS} {steps}
        cp {segments}/*.seg {copy}
    """, where=segments)
    assert done.returncode == 0, done.stderr
    segment = dump(copy)
    assert segment["lost_communicators"] == 0
    assert [c["entered"] for c in segment["comms"] if c["state"] == READY] == [2]


def run_steps(segments, steps, **more):
    return subprocess.run([STEPS, *steps.split()], env=environment(segments, **more),
                          capture_output=True, text=True, timeout=120)


def test_no_communicator_gets_a_block_that_the_gpu_still_writes_to(segments, dump):
    steps = ("id init=2,0 " + "all_reduce " * 5 + "destroy " + "init=2,0 destroy " * 1023 +
             "init=2,0 device_wait")
    done = run_steps(segments, steps, STUB_LATE="writes")
    assert (done.returncode, done.stderr) == (0, "")
    comms = dump(next(segments.iterdir()))["comms"]
    assert (comms[0]["state"], comms[0]["entered"], comms[0]["marked"]) == (DESTROYED, 5, 5)
    assert (comms[1]["state"], comms[1]["marked"]) == (READY, 0)


def test_a_block_is_used_again_when_all_markers_have_landed(segments, dump):
    steps = ("id init=2,0 " + "all_reduce " * 5 + "destroy device_wait " +
             "init=2,0 destroy " * 1023 + "init=2,0")
    done = run_steps(segments, steps, STUB_LATE="writes")
    assert (done.returncode, done.stderr) == (0, "")
    comms = dump(next(segments.iterdir()))["comms"]
    assert (comms[0]["state"], comms[0]["entered"], comms[0]["marked"]) == (READY, 0, 0)


def test_where_the_gpu_may_write_to_all_blocks_a_communicator_is_lost_and_one_line_says_so(
        segments, dump):
    steps = ("id " + "init=2,0 all_reduce destroy " * 1024 +
             "init=2,0 all_reduce init=2,0 device_wait")
    done = run_steps(segments, steps, STUB_LATE="writes")
    assert done.returncode == 0
    assert done.stderr.count("\n") == 1
    assert "1024 communicators are in use: some communicators are missing" in done.stderr
    segment = dump(next(segments.iterdir()))
    assert (segment["lost_communicators"], segment["left_out"]) == (2, 4)
    assert {c["state"] for c in segment["comms"]} == {DESTROYED}


def test_graph_markers_keep_a_block_for_good(segments, dump):
    steps = ("id init=2,0 capture all_reduce end_capture=0 instantiate=0,0 launch=0 destroy " +
             "init=2,0 destroy " * 1023 + "init=2,0")
    done = run_steps(segments, steps, ROLLCALL_GRAPH_MARKERS="1")
    assert (done.returncode, done.stderr) == (0, "")
    comms = dump(next(segments.iterdir()))["comms"]
    assert (comms[0]["state"], comms[1]["state"]) == (DESTROYED, READY)


F_OFD_GETLK, F_OFD_SETLK = 36, 37
LOCK = "hhqqi4x"


def is_locked(path):
    with open(path, "rb") as file:
        asked = fcntl.fcntl(file, F_OFD_GETLK, struct.pack(LOCK, fcntl.F_WRLCK, 0, 0, 1, 0))
    return struct.unpack(LOCK, asked)[0] != fcntl.F_UNLCK


def eventually(so):
    for _ in range(1000):
        if so():
            return True
        time.sleep(0.01)
    return False


@pytest.fixture
def waiting(segments, tmp_path):
    """waiting(steps) starts a process which, or whose child, then stands in its `stream_wait`:
    (process, go on)."""
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    started = []

    def family(pid):
        children = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text()
        return [pid, *children.split()]

    def stands_there(pid):
        try:
            said = pathlib.Path(f"/proc/{pid}/wchan").read_text()
        except OSError:
            return False
        return "partner" in said or "fifo" in said

    def start(steps, **more):
        process = subprocess.Popen(
            [STEPS, *steps.split()], stderr=subprocess.PIPE, text=True,
            env=environment(segments, STUB_BLOCK="cudaStreamSynchronize", STUB_FIFO=str(fifo),
                            **more))
        started.append(process)
        assert eventually(lambda: any(map(stands_there, family(process.pid)))), "it does not wait"
        return process, lambda: os.close(os.open(fifo, os.O_WRONLY | os.O_NONBLOCK))

    yield start
    for process in started:
        process.kill()
        process.wait()


def test_a_process_proves_that_it_lives_until_it_is_killed(waiting, segments, dump):
    process, _ = waiting("id init=2,0 stream_wait")
    path = next(segments.iterdir())
    segment = dump(path)
    assert segment["life_lock"] == 1 and is_locked(path)
    assert segment["namespace"] == os.stat("/proc/self/ns/pid").st_ino
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not is_locked(path)


def test_a_child_that_outlives_its_parent_does_not_prove_its_parents_life(waiting, segments):
    """The child waits; the parent waits for the child, and is killed."""
    process, go_on = waiting("id init=2,0 all_reduce fork stream_wait quick_exit=0 join")
    path = next(segments.iterdir())
    assert is_locked(path)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not is_locked(path)
    go_on()


# Makes a file with the name that its own segment will have, as somebody of another pid namespace
# may have made it; then becomes the program.
NAMESAKE = r"""
import fcntl, os, struct, sys
folder, template, namespace_at, namespace, magic, locked, *command = sys.argv[1:]
start = open("/proc/self/stat").read().rsplit(")", 1)[1].split()[19]
path = f"{folder}/{os.getpid()}-{start}.seg"
content = bytearray(open(template, "rb").read())
struct.pack_into("Q", content, int(namespace_at), int(namespace))
if magic == "0": content[:8] = bytes(8)
open(path, "wb").write(content)
if locked == "1":
    ready, told = os.pipe()
    if os.fork() == 0:
        file = open(path, "r+b")
        fcntl.fcntl(file, 37, struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, 0, 1, 0))
        os.write(told, b"x")
        os.close(0), os.close(1), os.close(2)
        import time; time.sleep(5)
        os._exit(0)
    os.read(ready, 1)
os.execv(command[0], command)
"""


def own_namespace():
    return os.stat("/proc/self/ns/pid").st_ino


@pytest.mark.parametrize("namespace, magic, locked, kept", [
    (own_namespace(), "1", "0", False), (0, "1", "0", False), (own_namespace(), "1", "1", True),
    (own_namespace() + 1, "1", "1", True), (own_namespace() + 1, "1", "0", True),
    (own_namespace(), "0", "0", True)],
    ids=["our_own_before_an_exec", "our_own_of_an_older_library", "somebody_who_lives",
         "somebody_who_lives_elsewhere", "somebody_who_lived_elsewhere", "one_that_is_being_made"])
def test_a_process_replaces_only_its_own_segment(segments, dump, tmp_path, namespace,
                                                                 magic, locked, kept):
    assert run_steps(segments, "id init=3,0").returncode == 0
    template = tmp_path / "template"
    next(segments.iterdir()).rename(template)
    namespace_at = template.read_bytes().find(struct.pack("Q", own_namespace()))
    done = subprocess.run(
        [sys.executable, "-c", NAMESAKE, segments, template, str(namespace_at), str(namespace),
         magic, locked, STEPS, "id", "init=2,0", "init=2,0"],
        env=environment(segments), capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    names = sorted(path.name for path in segments.iterdir())
    ours = [path for path in segments.iterdir() if len(dump(path)["comms"]) == 2]
    assert len(ours) == 1
    assert len(names) == (2 if kept else 1)
    assert (ours[0].name.count("-") == 2) == kept


def test_a_truncated_segment_costs_the_records_and_not_the_job(waiting, segments):
    process, go_on = waiting("id init=2,0 all_reduce stream_wait init=2,1 all_reduce "
                             "on=0 all_reduce on=1 all_reduce init=2,0 all_reduce")
    path = next(segments.iterdir())
    os.truncate(path, 16384)  # all but the communicators
    go_on()
    _, said = process.communicate(timeout=120)
    assert process.returncode == 0, said
    assert said.count("\n") == 1
    assert f"not recording, training unaffected: somebody cut short {path}" in said
    assert path.read_bytes()[:8] == bytes(8), "nobody takes it for a segment any more"


def test_a_process_with_a_truncated_segment_still_proves_that_it_lives(waiting, segments):
    process, go_on = waiting("id init=2,0 stream_wait init=2,1 stream_wait")
    path = next(segments.iterdir())
    os.truncate(path, 16384)
    go_on()
    assert eventually(lambda: path.read_bytes()[:8] == bytes(8))
    assert process.poll() is None and is_locked(path)


def test_a_segment_that_agents_extend_does_not_count_as_truncated(waiting, segments, dump):
    process, go_on = waiting("id init=2,0 all_reduce stream_wait init=2,1 all_reduce")
    path = next(segments.iterdir())
    os.truncate(path, 46 << 20)
    go_on()
    _, said = process.communicate(timeout=120)
    assert (process.returncode, said) == (0, "")
    assert [c["entered"] for c in dump(path)["comms"]] == [1, 1]
