// SPDX-License-Identifier: Apache-2.0
#include "agent/processes/stacks_switch.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "agent/processes/proc_files.h"
#include "agent/processes/rank_environment.h"

namespace rollcall {

bool IsStacksOff(absl::string_view value) {
  constexpr absl::string_view kOff[] = {"off", "0", "no", "false"};
  return std::any_of(std::begin(kOff), std::end(kOff), [value](absl::string_view word) {
    return absl::EqualsIgnoreCase(value, word);
  });
}

std::string WhyNoStacks(const std::string& proc_root, pid_t pid, bool* only_outside) {
  *only_outside = false;
  const auto environment = ReadProcFile(ProcPath(proc_root, pid, "environ"), kMaxEnvironBytes);
  if (absl::IsNotFound(environment.status())) return "";  // it has ended: the taker reports it
  *only_outside = absl::IsPermissionDenied(environment.status());
  if (*only_outside) return "";
  if (!environment.ok()) {
    return absl::StrCat("cannot read whether the process permits its stacks (", kStacksVariable,
                        "): ", environment.status().message());
  }
  const absl::string_view value = FindInEnviron(*environment, kStacksVariable);
  if (!IsStacksOff(value)) return "";
  return absl::StrCat("the stacks of this process are switched off (", kStacksVariable, "=off",
                      " in its environment)");
}

}  // namespace rollcall
