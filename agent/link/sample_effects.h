// SPDX-License-Identifier: Apache-2.0
// What the agent's samples add to the counters of the sampled processes: a stopped thread sleeps
// twice more, and a process that copies its own stacks reads them. Who compares two samples shall
// see what the program does, and nothing of that.
//
// Another program's samples (`rollcall stacks PID`, a debugger) count as the program's own. Pure.
// Thread-safe: the streams to several daemons share one.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <unordered_map>

#include "agent/processes/process_id.h"
#include "base/mutex.h"

namespace rollcall {

class SampleEffects {
 public:
  static constexpr size_t kMostProcesses = 4096;
  static constexpr size_t kMostThreads = 1024;  // of a process
  static constexpr pid_t kWholeProcess = 0;     // for `tid`

  // `count`: of the thread before a sample, which has added `added` to it. Returns the count
  // without what all earlier samples have added.
  uint64_t WithoutSamples(ProcessId process, pid_t tid, uint64_t count, uint64_t added)
      ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Effects {
    uint64_t used = 0;                          // number of the call that used it last
    std::unordered_map<pid_t, uint64_t> added;  // by thread
  };
  void ForgetOldest() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Mutex mutex_;
  uint64_t calls_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<ProcessId, Effects> processes_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace rollcall
