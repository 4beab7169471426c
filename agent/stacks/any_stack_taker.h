// SPDX-License-Identifier: Apache-2.0
// Takes stacks from outside where the kernel permits it, else from inside.
#pragma once

#include <string>

#include "agent/stacks/ptrace_stack_taker.h"
#include "agent/stacks/signal_stack_taker.h"
#include "agent/stacks/stack_taker.h"

namespace rollcall {

class AnyStackTaker : public StackTaker {
 public:
  explicit AnyStackTaker(const std::string& proc_root = "/proc")
      : outside_(proc_root), inside_(proc_root) {}

  RawSample Take(pid_t pid, const TakeLimits& limits) override;

 private:
  PtraceStackTaker outside_;
  SignalStackTaker inside_;
};

}  // namespace rollcall
