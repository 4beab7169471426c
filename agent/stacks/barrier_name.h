// SPDX-License-Identifier: Apache-2.0
// Finds the name of the barrier of JAX's coordination service at which a thread waits, in the copy
// of its stack. JAX hides the functions that it could be recorded in. Pure.
#pragma once

#include <string>
#include <vector>

#include "agent/processes/stack_sample.h"

namespace rollcall {

// "saved-4"; empty if the thread waits at none, or its name is not on the stack: one of 16 bytes or
// more is elsewhere. `frames`: the thread's native ones, innermost first. The job wrote the text.
std::string FindBarrierName(const RawThread& thread, const std::vector<Frame>& frames);

}  // namespace rollcall
