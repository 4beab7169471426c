// SPDX-License-Identifier: Apache-2.0
// Compares two samples of a process, taken a second or more apart. Threads that run the program
// decide; without one, all threads.
#pragma once

#include <string>

#include "daemon/model/job_state.h"

namespace rollcall {

namespace v1 {
class ProcessStack;
}

// Returns kUnknown if one of the samples has no frames.
Motion MotionBetween(const v1::ProcessStack& before, const v1::ProcessStack& after);

// Returns whether the sample shows nothing of what the process did: no thread has frames, and none
// waits. Such is a process that ends while its sample is taken.
bool ShowsNothing(const v1::ProcessStack& stack);

// Returns the functions of all threads, each once, separated by blanks.
std::string FunctionNames(const v1::ProcessStack& stack);

}  // namespace rollcall
