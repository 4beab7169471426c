// SPDX-License-Identifier: Apache-2.0
// The threads that keep a process alive whose main thread has come to its end: Python waits for all
// threads that are not daemons. Pure.
#pragma once

#include <vector>

#include "daemon/model/stack_place.h"

namespace rollcall {

namespace v1 {
class ProcessStack;
}

// Empty if the main thread has not come to its end, or no thread is known. At most
// limits::kKeepers.
std::vector<ThreadPlace> FindKeepers(const v1::ProcessStack& stack);

}  // namespace rollcall
