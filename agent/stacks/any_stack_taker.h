// SPDX-License-Identifier: Apache-2.0
// Takes stacks from outside (ptrace) if the kernel permits it, else from inside (signal). Does not
// touch a process that has switched its stacks off (stacks_switch.h).
#pragma once

#include <string>

#include "agent/stacks/ptrace_stack_taker.h"
#include "agent/stacks/signal_stack_taker.h"
#include "agent/stacks/stack_taker.h"

namespace rollcall {

class AnyStackTaker : public StackTaker {
 public:
  explicit AnyStackTaker(const std::string& proc_root = "/proc")
      : proc_root_(proc_root), outside_(proc_root), inside_(proc_root) {}

  RawSample Take(pid_t pid, const TakeLimits& limits) override;

 private:
  const std::string proc_root_;
  PtraceStackTaker outside_;
  SignalStackTaker inside_;
};

}  // namespace rollcall
