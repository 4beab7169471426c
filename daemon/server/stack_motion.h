// SPDX-License-Identifier: Apache-2.0
// What two samples of a process's stacks, a second or more apart, show.
#pragma once

#include <string>

#include "daemon/model/job_state.h"

namespace rollcall {

namespace v1 {
class ProcessStack;
}

// kUnknown where one of the samples has no frames.
Motion MotionBetween(const v1::ProcessStack& before, const v1::ProcessStack& after);

// The functions of all threads, blanks between, each once.
std::string WordsOf(const v1::ProcessStack& stack);

}  // namespace rollcall
