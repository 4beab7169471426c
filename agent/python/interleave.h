// SPDX-License-Identifier: Apache-2.0
// Inserts the Python frames into the native stack: each group at the C evaluator that ran it.
#pragma once

#include <string>
#include <vector>

#include "agent/processes/stack_sample.h"

namespace rollcall {

// Replaces each native frame of the evaluator by the Python functions that it ran, and keeps all
// other native frames. From 3.12 on, the frame address that the interpreter stores identifies the
// evaluator, before that its name. Python frames without an evaluator frame (the copy of the stack
// ended, the evaluator has no name) follow at the outer end, and `note` reports them. `native` and
// the result are innermost first.
std::vector<Frame> InterleavePython(const std::vector<Frame>& native, const RawThread& thread,
                                    const PythonSample& python, std::string* note);

}  // namespace rollcall
