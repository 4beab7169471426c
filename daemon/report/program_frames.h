// SPDX-License-Identifier: Apache-2.0
// The program's own functions on the stack of a thread. Pure.
#pragma once

#include <vector>

#include "daemon/model/program_frame.h"

namespace rollcall {

namespace v1 {
class ThreadStack;
}  // namespace v1

// Outermost first; of a deep stack the outermost ones, and the innermost.
std::vector<ProgramFrame> ProgramFrames(const v1::ThreadStack& thread);

}  // namespace rollcall
