// SPDX-License-Identifier: Apache-2.0
// What `rollcall diagnose --format=json` prints. Pure.
#pragma once

#include <string>
#include <vector>

#include "daemon/looks/judge.h"
#include "rollcall/v1/look.pb.h"

namespace rollcall {

// A document for each job that hangs, then one for each unclear job; without such a job, one
// without verdicts. Each has the fields of incident.json and the object "look": outcome (hangs,
// cannot_tell, goes_on, no_job), why, ranks, world_size, hosts, unseen and logs.
std::string JobsAsJson(const std::vector<LookedAtJob>& jobs,
                       const std::vector<v1::HostLook>& looks);

}  // namespace rollcall
