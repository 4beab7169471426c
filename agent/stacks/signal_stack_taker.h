// SPDX-License-Identifier: Apache-2.0
// Takes stacks by the signal that the process's own library answers. Needs no privilege except to
// run as the same user.
//
// Leaves some threads alone: those that block the signal, and those in a system call that a signal
// would end although the handler restarts calls (poll, epoll, select, sleep and similar). Such
// threads have only Python frames, read from memory.
#pragma once

#include <string>

#include "agent/python/interpreter.h"
#include "agent/stacks/stack_taker.h"
#include "agent/symbols/module_files.h"

namespace rollcall {

class SignalStackTaker : public StackTaker {
 public:
  explicit SignalStackTaker(std::string proc_root = "/proc")
      : proc_root_(std::move(proc_root)), files_(proc_root_) {}

  RawSample Take(pid_t pid, const TakeLimits& limits) override;

 private:
  std::string proc_root_;
  ModuleFiles files_;
  PythonFinder python_finder_;
};

}  // namespace rollcall
