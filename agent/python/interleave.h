// SPDX-License-Identifier: Apache-2.0
// Python frames among the native ones, each group where the C evaluator ran it.
#pragma once

#include <string>
#include <vector>

#include "agent/processes/stack_sample.h"

namespace rollcall {

// Each native frame of the evaluator is replaced by the Python functions that it ran; the others
// stay. It is known by what it keeps on its stack (3.12 on), else by its name. Frames without a
// partner (the copy of the stack ended, the evaluator has no name) follow at the outer end, and
// `note` says so. `native`: innermost first, as is the result.
std::vector<Frame> InterleavePython(const std::vector<Frame>& native, const RawThread& thread,
                                    const PythonSample& python, std::string* note);

}  // namespace rollcall
