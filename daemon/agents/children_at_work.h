// SPDX-License-Identifier: Apache-2.0
// Which processes that a process has started work, by two samples of it, and whether it waits for
// them. Pure.
#pragma once

#include <cstdint>
#include <set>
#include <vector>

#include "daemon/model/job_state.h"

namespace rollcall {

namespace v1 {
class ProcessStack;
}

// Returns the children that used much CPU time between the samples, or read or wrote much; most
// first. After these, the children that used some CPU time (`is_slow`).
// Without a pid: children that have ended meanwhile. Empty also if the samples are too close.
std::vector<ChildAtWork> FindChildrenAtWork(const v1::ProcessStack& before,
                                            const v1::ProcessStack& after);

// How many bytes a second the main thread or one that makes calls receives by the connections that
// it waits for in both samples; 0 means too few to show that they move, or unknown.
double BytesReceivedASecond(const v1::ProcessStack& before, const v1::ProcessStack& after);

// Keeps those for which the process may wait: all where a thread waits for a process that it has
// started, or for what such a process writes; where the main thread sleeps, as a loop that looks
// after its children does, those that use much of a CPU. Others may stand beside a hang.
void KeepAwaited(const v1::ProcessStack& stack, std::vector<ChildAtWork>* children);

// Removes children that are ranks of the job, and what these have started: ranks that wait use the
// CPU, too.
void RemoveRanks(const std::set<int32_t>& ranks, v1::ProcessStack* stack);

}  // namespace rollcall
