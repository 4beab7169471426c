// SPDX-License-Identifier: Apache-2.0
#include "agent/stacks/signal_stack_taker.h"

#include <signal.h>

#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "agent/processes/proc_stat.h"
#include "agent/processes/process_memory.h"
#include "agent/python/interpreter.h"
#include "agent/python/sampler.h"
#include "agent/stacks/sample_parts.h"
#include "agent/stacks/sample_switches.h"
#include "agent/stacks/segment_stack_requests.h"
#include "agent/stacks/wait_channels.h"
#include "base/monotonic_clock.h"

namespace rollcall {
namespace {

std::string ReasonNotToSignal(int signal, const RawThread& thread) {
  if (thread.state == 'D') return "left alone: in an uninterruptible wait in the kernel";
  if (thread.state == 'T' || thread.state == 't') return "stopped, so it cannot answer a signal";
  const uint64_t bit = uint64_t{1} << (signal - 1);
  if ((thread.signals_caught & bit) == 0) {
    return "the program has replaced the handler of the signal";
  }
  if ((thread.signals_blocked & bit) != 0) return "it blocks the signal";
  if (thread.state == 'S' && IsUnknownWait(thread.wchan)) {
    return "left alone: the kernel does not show which system call a signal would end";
  }
  if (thread.state == 'S' && EndsWhenSignalled(thread.wchan)) {
    return "left alone: a signal would end the system call that it is in";
  }
  return "";
}

// The threads that the signal may reach. The others get an error with the reason.
std::vector<RawThread*> SelectThreads(int signal, bool only_main, RawSample* sample) {
  std::vector<RawThread*> threads;
  for (RawThread& thread : sample->threads) {
    if (!thread.error.empty()) continue;
    if (only_main && !thread.is_main) {
      thread.error = "not asked for its native frames";
      continue;
    }
    thread.error = ReasonNotToSignal(signal, thread);
    if (thread.error.empty()) threads.push_back(&thread);
  }
  return threads;
}

void ReadPython(const std::string& proc_root, UniqueFd memory_fd, PythonSymbols* symbols,
                RawSample* sample) {
  FileMemory file(std::move(memory_fd));
  ResidentMemory resident(&file, proc_root, sample->pid);
  auto interpreter = FindPython(*sample, symbols, &file, &resident, &sample->python.note);
  if (!interpreter.has_value()) return;
  ProcessMemory* memory = &file;
  if (interpreter->only_resident) memory = &resident;
  PythonSampler python(*std::move(interpreter), memory);
  python.ListThreads();
  for (RawThread& thread : sample->threads) {
    python.ReadFrames(&thread);
    python.KeepFrames(&thread);
  }
  python.ReadCode(sample);
}

}  // namespace

RawSample SignalStackTaker::Take(pid_t pid, const TakeLimits& limits) {
  const int64_t start = MonotonicNs();
  RawSample sample;
  sample.pid = pid;
  sample.method = "signal";
  if (!BeginSample(proc_root_, limits, &sample)) return sample;
  const auto requests = SegmentStackRequests::Open(proc_root_, pid, sample.maps);
  if (!requests.ok()) {
    sample.refused = true;
    sample.error = absl::StrCat("cannot ask process ", pid,
                                " for its stacks: ", std::string(requests.status().message()));
    for (RawThread& thread : sample.threads) {
      if (thread.error.empty()) thread.error = "see the error of the process";
    }
    return sample;
  }
  const std::vector<RawThread*> threads =
      SelectThreads((*requests)->signal(), limits.program_threads > 0, &sample);
  const int64_t begun = MonotonicNs();
  (*requests)->RequestStacks(threads, limits.all_stack_bytes, limits.thread_timeout_ns,
                             start + limits.TotalTimeoutNs(sample.threads.size()));
  sample.copying_ns = MonotonicNs() - begun;
  UniqueFd memory = (*requests)->TakeMemory();
  if (memory.valid()) ReadPython(proc_root_, std::move(memory), symbols_.get(), &sample);
  KeepThreadsOfProgram(limits, &sample);
  CountSampleSwitches(proc_root_, &sample);
  sample.duration_ns = MonotonicNs() - start;
  return sample;
}

}  // namespace rollcall
