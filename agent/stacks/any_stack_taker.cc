// SPDX-License-Identifier: Apache-2.0
#include "agent/stacks/any_stack_taker.h"

#include "absl/strings/str_cat.h"
#include "agent/processes/stacks_switch.h"

namespace rollcall {

RawSample AnyStackTaker::Take(pid_t pid, const TakeLimits& limits) {
  bool only_outside = false;
  const std::string why_not = WhyNoStacks(proc_root_, pid, &only_outside);
  if (!why_not.empty()) {
    RawSample none;
    none.pid = pid;
    none.error = why_not;
    return none;
  }
  RawSample outside = outside_.Take(pid, limits);
  if (!outside.refused || only_outside) return outside;
  RawSample inside = inside_.Take(pid, limits);
  if (!inside.refused) return inside;
  absl::StrAppend(&outside.error, "\n", inside.error);
  return outside;
}

}  // namespace rollcall
