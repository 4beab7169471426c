// SPDX-License-Identifier: Apache-2.0
// Takes stacks from outside, by ptrace.
//
// It stops one thread at a time, for the time of the copy (tens of microseconds), and never with a
// signal: SEIZE and INTERRUPT, so nothing is delivered to the job, and a stopped job stays stopped.
// A thread that is in the kernel (state D), dead, or traced by another process is listed and left
// alone. A signal that arrives meanwhile is passed on. The job sees what any debugger's attach
// does: the kernel restarts a blocked system call, except the few that it never restarts
// (epoll_wait and sigtimedwait return EINTR).
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
