// SPDX-License-Identifier: Apache-2.0
// ROLLCALL_STACKS: the switch by which the owner of a process forbids its stacks. Where it is off,
// nothing stops the process, signals it, or writes into its stack area.
#pragma once

#include <sys/types.h>

#include <string>

#include "absl/strings/string_view.h"

namespace rollcall {

inline constexpr char kStacksVariable[] = "ROLLCALL_STACKS";

// Returns whether this value switches stacks off: "off", "0", "no", "false", in any case.
bool IsStacksOff(absl::string_view value);

// Why no stacks of the process may be taken; empty if they may. A process whose environment cannot
// be read may have switched its stacks off, so its stacks may not be taken. May block.
//
// `only_outside`: set where the kernel refuses to show the environment. Then it refuses tracing,
// too, which the attempt explains; a signal would reach the process all the same and must not be
// sent.
std::string WhyNoStacks(const std::string& proc_root, pid_t pid, bool* only_outside);

}  // namespace rollcall
