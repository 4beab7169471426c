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

#include <memory>
#include <string>
#include <utility>

#include "agent/python/python_symbols.h"
#include "agent/stacks/stack_taker.h"

namespace rollcall {

class PtraceStackTaker : public StackTaker {
 public:
  // `symbols`: nullptr means those in the files of the process.
  explicit PtraceStackTaker(std::string proc_root = "/proc",
                            std::shared_ptr<PythonSymbols> symbols = nullptr)
      : proc_root_(std::move(proc_root)), symbols_(std::move(symbols)) {
    if (symbols_ == nullptr) symbols_ = std::make_shared<SymbolsInFiles>(proc_root_);
  }

  RawSample Take(pid_t pid, const TakeLimits& limits) override;

 private:
  std::string proc_root_;
  std::shared_ptr<PythonSymbols> symbols_;
};

}  // namespace rollcall
