# SPDX-License-Identifier: Apache-2.0
"""Jobs whose NCCL a preloaded library cannot wrap: there the library is NCCL's profiler plugin."""
import pathlib
import shutil
import subprocess

import pytest
from conftest import BUILD, long

ABI = pathlib.Path(__file__).parents[3] / "interpose" / "profiler_abi.h"

# Counts the events, and prints the counts when a communicator ends.
OTHERS_PLUGIN = r"""
#include "interpose/calls/profiler_abi.h"
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>
using namespace rollcall::profiler;
static int started, stopped;
static int event;  // whose address is a handle
static int init4(void** context, int* mask, const char*, uint64_t, int, int, int, void*) {
  *context = &event;
  *mask = kGroup | kColl | kP2p;
  return 0;
}
static int init5(void** context, uint64_t, int* mask, const char*, int, int, int, void*) {
  *context = &event;
  *mask = kGroupApi | kCollApi | kColl | kP2p;
  return 0;
}
static int start(void* context, void** handle, void* descriptor) {
  const void* parent = static_cast<Descriptor*>(descriptor)->parent;
  if (context != &event || (parent != nullptr && parent != &event)) _exit(99);
  ++started;
  *handle = &event;
  return 0;
}
static int stop(void* handle) {
  if (handle != &event) _exit(98);
  ++stopped;
  return 0;
}
static int record(void* handle, int, void*) { if (handle != &event) _exit(97); return 0; }
static int finalize(void* context) {
  char line[64];
  const int out = open(OUT, O_WRONLY | O_APPEND | O_CREAT, 0600);
  const int bytes = snprintf(line, sizeof(line), "%d %d %d\n", context == &event, started, stopped);
  if (write(out, line, bytes) != bytes) return 1;
  return close(out);
}
#define TABLE(version, init) extern "C" __attribute__((visibility("default"))) \
  const Table ncclProfiler_v##version = {"other", reinterpret_cast<void (*)()>(&init), start, stop, \
                                         record, finalize};
#if VERSION == 4
TABLE(4, init4)
#else
TABLE(5, init5)
#endif
"""


@pytest.fixture
def others_plugin(tmp_path):
    """others_plugin(version) -> (its path, the output of its processes)"""
    said = tmp_path / "events"

    def make(version):
        source = tmp_path / "plugin.cc"
        source.write_text(OTHERS_PLUGIN)
        plugin = tmp_path / "libnccl-profiler.so"
        subprocess.run(["c++", "-shared", "-fPIC", f"-DVERSION={version}", f'-DOUT="{said}"',
                        f"-I{ABI.parents[1]}", "-o", plugin, source], check=True)
        return plugin, lambda: sorted(said.read_text().splitlines())

    return make


def test_a_second_nccl_of_a_process_reports_through_the_plugin(run, tmp_path):
    copy = tmp_path / "libnccl.so.2"
    shutil.copy(BUILD / "sim" / "libnccl.so.2", copy)
    verdict = run("two_nccls", env={"SECOND_NCCL": str(copy)}).verdict
    assert verdict["cause"] == "missing_rank", verdict["summary"]
    assert [c["rank"] for c in verdict["culprits"]] == [3]
    assert verdict["waiting_ranks"] == [0, 1, 2]
    assert verdict["call"]["position"] == 5


# With RTLD_DEEPBIND, waits for the GPU bypass the library, too. Only contradictions show.
@pytest.mark.parametrize("program, wrong, cause", [("bound_to_itself", "stops", "missing_rank"),
                                                   long("bound_to_itself", "less", "argument_mismatch"),
                                                   ("bound_deeply", "less", "argument_mismatch")])
def test_calls_bound_past_the_preloaded_library_are_recorded(run, program, wrong, cause):
    verdict = run(program, env={"WRONG": wrong}).verdict
    assert verdict["cause"] == cause, verdict["summary"]
    assert [c["rank"] for c in verdict["culprits"]] == [3]
    assert (verdict["call"]["operation"], verdict["call"]["position"]) == ("AllReduce", 10)
    assert verdict["call"]["reduction"] == ""  # only the wrappers record it


@pytest.mark.parametrize("version", ["4", "5", "6"])
def test_the_plugin_finds_a_missing_rank(run, version):
    verdict = run("one_rank_stops_calling_static", env={"ROLLCALL_SIM_PROFILER": version}).verdict
    assert verdict["cause"] == "missing_rank"
    assert [c["rank"] for c in verdict["culprits"]] == [3]
    assert verdict["waiting_ranks"] == [0, 1, 2]
    assert (verdict["call"]["operation"], verdict["call"]["position"]) == ("AllReduce", 10)
    assert (verdict["call"]["dtype"], verdict["call"]["count"]) == ("float32", 1024)


@pytest.mark.parametrize("version", [long("4"), long("5"), "6"])
def test_the_plugin_finds_a_receive_of_another_size(run, version):
    # A first send whose peer never comes does not show: NCCL reports it only after it met the peer.
    verdict = run("one_rank_receives_less_static", env={"ROLLCALL_SIM_PROFILER": version},
                  until="does not act yet: the verdict is only possible").verdict
    assert (verdict["cause"], verdict["mismatched_fields"]) == ("unmatched_p2p", ["count"])


@pytest.mark.parametrize("version", ["1", *map(long, "2345"), "6"])
def test_a_healthy_job_is_left_alone(run, version):
    result = run("healthy_mix_static", env={"ROLLCALL_SIM_PROFILER": version})
    assert (result.exit_code, result.reports) == (0, []), result.err


def test_the_plugin_records_no_captured_calls(run):
    result = run("replays_graphs_static", env={"WRONG": "nothing"})
    assert (result.exit_code, result.err, result.reports) == (0, "", [])


@pytest.mark.parametrize("version", [long(4), 5])
@pytest.mark.parametrize("victim", ["healthy_mix", "healthy_mix_static"])
@pytest.mark.parametrize("by_name", [True, long(False)], ids=["named", "found"])
def test_another_plugin_gets_the_same_events_as_alone(run, others_plugin, tmp_path, version,
                                                     victim, by_name):
    plugin, said = others_plugin(version)
    env = {"NCCL_PROFILER_PLUGIN": str(plugin)} if by_name else {
        "LD_LIBRARY_PATH": str(tmp_path)}
    assert run(victim, env={**env, "ROLLCALL": "0"}).exit_code == 0
    alone = said()
    assert alone and all(line.startswith("1 ") for line in alone)
    (tmp_path / "events").unlink()
    assert run(victim, env=env).exit_code == 0
    assert said() == alone


def test_beside_another_plugin_the_verdict_names_a_missing_rank(run, others_plugin):
    plugin, _ = others_plugin(5)
    verdict = run("one_rank_stops_calling_static",
                  env={"NCCL_PROFILER_PLUGIN": str(plugin)}).verdict
    assert (verdict["cause"], verdict["culprits"][0]["rank"]) == ("missing_rank", 3)
