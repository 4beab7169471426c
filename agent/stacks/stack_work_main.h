// SPDX-License-Identifier: Apache-2.0
// The child's part of the work on stacks (stack_work.h).
#pragma once

namespace rollcall {

// The first argument of rollcall-probe.
inline constexpr char kStackWorkProbe[] = "stacks";

// Memory that the child may take for symbols; what a job's files expand to counts.
inline constexpr unsigned long kStackWorkMemory = 512ul << 20;

// Reads requests on descriptor 0 until its end, and writes the answers on descriptor 1. Descriptor
// 3 is a file with a FileInUse (file_in_use.h). Returns the exit code of the program.
int DoStackWork();

}  // namespace rollcall
