// SPDX-License-Identifier: Apache-2.0
// The stacks of an incident: two samples of each process that it names, and the merged tree. Pure:
// any thread, on values of its own.
#pragma once

#include <optional>
#include <vector>

#include "daemon/model/job_state.h"
#include "daemon/report/stacks/stack_tree.h"

namespace rollcall {

namespace v1 {
class Incident;
class ProcessStack;
class StackTree;
}  // namespace v1

// Keeps the newest samples of each process. Replaces a sample without a stack, else the oldest.
void AddSample(const v1::ProcessStack& stack, v1::Incident* incident);

// Records once why a process has no sample now, if no agent was connected. Replaces no sample.
void AddFailure(const v1::ProcessStack& stack, v1::Incident* incident);

// What a sample of a process shows beside the one before it.
struct StackChange {
  Motion motion = Motion::kUnknown;
  // nullopt if it is the first.
  std::optional<std::vector<ChildAtWork>> children_at_work = {};
  double receives = 0;  // bytes a second
};

// Compares the stack with the newest sample of the process in the incident.
StackChange ChangeSince(const v1::Incident& incident, const v1::ProcessStack& stack);

// Merges the newest sample of each process with `rest`.
v1::StackTree MergedStacks(const v1::Incident& incident, const StackTree& rest);

}  // namespace rollcall
