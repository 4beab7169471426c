// SPDX-License-Identifier: Apache-2.0
// Finds the key of a store that a thread waits for in the copy of its stack: interpose/key_note.h.
// Pure.
#pragma once

#include <string>
#include <vector>

#include "agent/processes/stack_sample.h"

namespace rollcall {

// "settings"; "ready/0 ... ready/3 (4 keys)" if the thread waits for several; empty if there is no
// note in a frame of the library. `frames`: the thread's native ones, innermost first. The job
// wrote the text.
std::string FindNotedKey(const RawThread& thread, const std::vector<Frame>& frames);

}  // namespace rollcall
