// SPDX-License-Identifier: Apache-2.0
// Adds a sample of a process's stacks to the row of those that show the same: it stands. Pure.
#pragma once

#include <cstdint>
#include <memory>

#include "daemon/model/standing.h"

namespace rollcall {

namespace v1 {
class ProcessStack;
}

// `before`: by the samples so far; nullptr if this is the first. `now_ns`: when this one arrived. A
// sample in which the process has moved begins a new row: a thread of the program is at another
// place, or more than a trace of CPU time or bytes was used. nullptr if the sample has no frames.
// `may_spin`: a main thread that waits in MPI, NCCL or for its GPU may use the CPU.
std::shared_ptr<const Standing> AddToRow(const std::shared_ptr<const Standing>& before,
                                         const v1::ProcessStack& stack, int64_t now_ns,
                                         bool may_spin = false);

}  // namespace rollcall
