// SPDX-License-Identifier: Apache-2.0
// The threads of a process that make its calls: two of them on one communicator have no order of
// their own, and a rank stands where the thread stands that makes its calls.
#pragma once

#include <vector>

#include "agent/collector/collected_process.h"

namespace rollcall {

// Adds the threads of the records that are not known yet. A process that starts a thread for each
// call has more than anybody can look at: the oldest go, but for the first one.
void NoteCallers(const std::vector<RecordSnapshot>& records, std::vector<Caller>* callers);

}  // namespace rollcall
