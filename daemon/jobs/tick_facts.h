// SPDX-License-Identifier: Apache-2.0
// Converts agents' messages to the values of model/. proto/facts.def lists the fields that are
// copied unchanged.
//
// AgentTimes converts the agent's times to the daemon's clock. Pure. What cannot be is limited to
// what can be (see AgentTimes and KnownRank()), and what exceeds a limit is dropped before it takes
// memory; both add to `dropped` (may be nullptr).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "daemon/jobs/agent_times.h"
#include "daemon/model/interned_shapes.h"
#include "daemon/model/job_model.h"

namespace rollcall {

namespace v1 {
class CommUpdate;
class Evidence;
class Identity;
class ProcessUpdate;
class Tick;
}  // namespace v1

// Limits all times of an agent's tick to what the daemon can add and subtract without an overflow.
// Call it once, when the tick arrives.
void ClampTimes(v1::Tick* tick);

// A rank or a number of ranks that a job can have; else `unknown`, and it counts as a number that
// cannot be. Negative values also mean unknown, and do not count.
int32_t KnownRank(int32_t rank, int32_t unknown, DroppedCounts* dropped);

ProcessIdentity ToIdentity(const v1::Identity& update, DroppedCounts* dropped);
ProcessEvidence ToEvidence(const v1::Evidence& update, const AgentTimes& times,
                           DroppedCounts* dropped);
// `shapes`: the share of the job.
CommProgress ToProgress(const v1::CommUpdate& update, const AgentTimes& times, ShapeShare* shapes,
                        DroppedCounts* dropped);
// The call sites of an update, at most as many as a process may have.
std::vector<std::string> ToSites(const v1::ProcessUpdate& update, DroppedCounts* dropped);

}  // namespace rollcall
