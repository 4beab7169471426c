// SPDX-License-Identifier: Apache-2.0
#include "agent/stacks/sample_parts.h"

#include <algorithm>
#include <ctime>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "agent/processes/proc_files.h"
#include "agent/processes/trace_refused.h"
#include "agent/stacks/wait_channels.h"
#include "base/monotonic_clock.h"

namespace rollcall {
namespace {

// A host may permit a process 262,144 mappings, of some 80 bytes each. Paths may have 4 KiB.
constexpr size_t kMaxMapsBytes = 24 << 20;
constexpr int kReads = 20;
constexpr long kReadAgainNs = 100'000;

void AddError(const std::string& text, RawSample* sample) {
  absl::StrAppend(&sample->error, sample->error.empty() ? "" : "\n", text);
}

bool ReadMaps(const std::string& proc_root, RawSample* sample) {
  absl::StatusOr<std::string> maps =
      ReadProcFile(ProcPath(proc_root, sample->pid, "maps"), kMaxMapsBytes);
  if (maps.ok() && maps->size() == kMaxMapsBytes) {
    maps->resize(maps->rfind('\n') + 1);  // not a part of a path
    AddError("the list of its mappings is too long: no names from those of high addresses", sample);
  }
  if (maps.ok()) sample->maps = ParseProcMaps(*maps);
  if (!sample->maps.empty()) return true;
  sample->refused = !maps.ok() && !absl::IsNotFound(maps.status());
  sample->error = sample->refused
                      ? TraceRefusedMessage(proc_root, sample->pid)
                      : absl::StrCat("process ", sample->pid, " has ended, no stacks to take");
  return false;
}

std::string ReasonNotToTouch(const ProcThread& thread) {
  if (thread.tracer != 0) {
    return absl::StrCat("left alone: process ", thread.tracer, " (a debugger?) traces it already");
  }
  if (thread.state == 'Z' || thread.state == 'X') return "it has ended";
  return "";
}

// Reads a thread again that has no wait channel yet, because it fell asleep during the reading.
// `left`: further reads for this process. If the kernel never shows the channel, they soon run out.
void ReadAgain(const std::string& proc_root, pid_t pid, int* left, ProcThread* thread) {
  while (*left > 0 && thread->state == 'S' && IsUnknownWait(thread->wchan)) {
    --*left;
    const timespec pause = {0, kReadAgainNs};
    nanosleep(&pause, nullptr);
    absl::StatusOr<ProcThread> seen = ReadProcThread(proc_root, pid, thread->tid);
    if (!seen.ok()) return;
    *thread = *std::move(seen);
  }
}

}  // namespace

bool BeginSample(const std::string& proc_root, const TakeLimits& limits, RawSample* sample) {
  sample->taken_unix_ns = UnixNs();
  absl::StatusOr<ProcThreads> found = ReadProcThreads(proc_root, sample->pid, limits.max_threads);
  if (!found.ok()) {
    sample->error = absl::StrCat("process ", sample->pid, " has ended, no stacks to take");
    return false;
  }
  const bool readable = ReadMaps(proc_root, sample);
  if (found->left_out) {
    AddError(absl::StrCat("more than ", limits.max_threads, " threads; the rest is left out"),
             sample);
  }
  int left = kReads;
  for (ProcThread& seen : found->threads) {
    RawThread thread;
    ReadAgain(proc_root, sample->pid, &left, &seen);
    thread.error = ReasonNotToTouch(seen);
    if (thread.error.empty() && !readable) thread.error = "see the error of the process";
    thread.tid = seen.tid;
    thread.own_tid = seen.own_tid != 0 ? seen.own_tid : seen.tid;
    thread.is_main = seen.tid == sample->pid;
    thread.name = std::move(seen.name);
    thread.state = seen.state;
    thread.wchan = std::move(seen.wchan);
    thread.cpu_ns = seen.cpu_ns;
    thread.signals_blocked = seen.signals_blocked;
    thread.signals_caught = seen.signals_caught;
    thread.switches = seen.switches;
    sample->threads.push_back(std::move(thread));
  }
  return readable;
}

bool HasPythonFrames(const RawThread& thread) {
  return std::any_of(thread.python_frames.begin(), thread.python_frames.end(),
                     [](const RawPythonFrame& frame) { return frame.code != 0; });
}

void KeepThreadsOfProgram(const TakeLimits& limits, RawSample* sample) {
  if (limits.program_threads == 0) return;
  std::vector<RawThread>& threads = sample->threads;
  const auto is_other = [](const RawThread& thread) {
    return !thread.is_main && !HasPythonFrames(thread);
  };
  threads.erase(std::remove_if(threads.begin(), threads.end(), is_other), threads.end());
  if (threads.size() > limits.program_threads) threads.resize(limits.program_threads);
}

}  // namespace rollcall
