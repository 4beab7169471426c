// SPDX-License-Identifier: Apache-2.0
// Which of the processes that a process has started are sampled with it, and what is kept of their
// stacks. Pure, but for LookAtChild().
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "agent/stacks/stack_taker.h"
#include "rollcall/v1/incident.pb.h"

namespace rollcall {

inline constexpr size_t kMostSampledChildren = 8;

TakeLimits LimitsOfChildren();

// Returns the indices of its children, at most kMostSampledChildren: those that can be asked,
// parents before their children, and stopped ones last.
std::vector<int> ChildrenToSample(const v1::ProcessStack& stack);

// The start of this child of `parent`, which the process `of` has started; 0 if it is gone, or runs
// as another user. May block: see spare_threads.h.
uint64_t LookAtChild(const std::string& proc_root, pid_t of, pid_t parent, pid_t child);

// Whether a thread of this process waits for something else than a lock, and is not among these.
// May block.
bool HidesAWait(const std::string& proc_root, pid_t pid, const std::vector<pid_t>& sampled);

// Adds the threads that have frames.
void AddChildThreads(v1::ProcessStack taken, v1::ChildProcess* child);

}  // namespace rollcall
