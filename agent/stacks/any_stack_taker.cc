// SPDX-License-Identifier: Apache-2.0
#include "agent/stacks/any_stack_taker.h"

#include "absl/strings/str_cat.h"

namespace rollcall {

RawSample AnyStackTaker::Take(pid_t pid, const TakeLimits& limits) {
  RawSample outside = outside_.Take(pid, limits);
  if (!outside.refused) return outside;
  RawSample inside = inside_.Take(pid, limits);
  if (!inside.refused) return inside;
  absl::StrAppend(&outside.error, "\n", inside.error);
  return outside;
}

}  // namespace rollcall
