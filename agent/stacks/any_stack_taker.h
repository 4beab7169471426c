// SPDX-License-Identifier: Apache-2.0
// Takes stacks from outside (ptrace) if the kernel permits it, else from inside (signal). Does not
// touch a process that has switched its stacks off (stacks_switch.h).
#pragma once

#include <memory>
#include <string>

#include "agent/stacks/ptrace_stack_taker.h"
#include "agent/stacks/signal_stack_taker.h"
#include "agent/stacks/stack_taker.h"

namespace rollcall {

class AnyStackTaker : public StackTaker {
 public:
  // `symbols`: nullptr means those in the files of the process.
  explicit AnyStackTaker(const std::string& proc_root = "/proc",
                         const std::shared_ptr<PythonSymbols>& symbols = nullptr)
      : proc_root_(proc_root), outside_(proc_root, symbols), inside_(proc_root, symbols) {}

  RawSample Take(pid_t pid, const TakeLimits& limits) override;

 private:
  const std::string proc_root_;
  PtraceStackTaker outside_;
  SignalStackTaker inside_;
};

}  // namespace rollcall
