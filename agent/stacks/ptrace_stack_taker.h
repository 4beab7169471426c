// SPDX-License-Identifier: Apache-2.0
// Takes stacks from outside, by ptrace.
//
// Stops one thread at a time, for the time of the copy (tens of microseconds), and never with a
// signal: SEIZE and INTERRUPT deliver nothing to the job, and a stopped job stays stopped. Lists
// but leaves alone a thread that is in an uninterruptible wait (state D), dead, or traced by
// another process. Passes on a signal that arrives meanwhile. The job sees the effects of any
// debugger's attach: the kernel restarts a blocked system call, except the few that it never
// restarts (epoll_wait and sigtimedwait return EINTR).
#pragma once

#include <string>

#include "agent/python/interpreter.h"
#include "agent/stacks/stack_taker.h"
#include "agent/symbols/module_files.h"

namespace rollcall {

class PtraceStackTaker : public StackTaker {
 public:
  explicit PtraceStackTaker(std::string proc_root = "/proc")
      : proc_root_(std::move(proc_root)), files_(proc_root_) {}

  RawSample Take(pid_t pid, const TakeLimits& limits) override;

 private:
  std::string proc_root_;
  ModuleFiles files_;
  PythonFinder python_finder_;
};

}  // namespace rollcall
