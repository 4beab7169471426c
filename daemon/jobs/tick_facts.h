// SPDX-License-Identifier: Apache-2.0
// Converts agents' messages to the values of model/. proto/facts.def lists the fields that are
// copied unchanged.
//
// `offset_ns` converts the agent's times to the daemon's clock. Pure. Keeps impossible values,
// because the model ignores them. Drops what exceeds a limit before it takes memory, and adds it to
// `dropped` (nullptr: nobody counts).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

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

ProcessIdentity ToIdentity(const v1::Identity& update);
ProcessEvidence ToEvidence(const v1::Evidence& update, int64_t offset_ns,
                           DroppedCounts* dropped = nullptr);
// `shapes`: the share of the job.
CommProgress ToProgress(const v1::CommUpdate& update, int64_t offset_ns, ShapeShare* shapes,
                        DroppedCounts* dropped = nullptr);
// The call sites of an update, at most as many as a process may have.
std::vector<std::string> ToSites(const v1::ProcessUpdate& update, DroppedCounts* dropped);

}  // namespace rollcall
