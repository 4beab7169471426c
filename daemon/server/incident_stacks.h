// SPDX-License-Identifier: Apache-2.0
// The stacks that an incident holds: two samples of each process that it names, and what all show
// together. Pure: any thread, on values of its own.
#pragma once

#include "daemon/model/job_state.h"
#include "daemon/report/stacks/stack_tree.h"

namespace rollcall {

namespace v1 {
class Incident;
class ProcessStack;
class StackTree;
}  // namespace v1

// The newest samples of each process are kept. What gives way is one without a stack, or the
// oldest.
void AddSample(const v1::ProcessStack& stack, v1::Incident* incident);

// Why a process has no sample now, where no agent could be asked: said once, and nothing gives way.
void AddFailure(const v1::ProcessStack& stack, v1::Incident* incident);

// What the stack shows against the newest sample of the process that the incident holds.
Motion MotionSince(const v1::Incident& incident, const v1::ProcessStack& stack);

// The newest sample of each process, and those that were merged before.
v1::StackTree MergedStacks(const v1::Incident& incident, const StackTree& rest);

}  // namespace rollcall
