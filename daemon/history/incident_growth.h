// SPDX-License-Identifier: Apache-2.0
// What hangs that last cost now. The history has their cost up to the time at which it stored them.
// Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "rollcall/v1/incident.pb.h"
#include "rollcall/v1/query.pb.h"
#include "rollcall/v1/store.pb.h"

namespace rollcall {

// Ranks of the job times the time from the first wait to the end, or to `now_ns` (of the wall
// clock) while the hang lasts. 0 if it is not confirmed.
double LostRankSeconds(const v1::Incident& incident, int64_t now_ns);

// Whether the values of the answer are known by the stacks of an open incident, as the framework
// is.
bool NeedsStacks(const v1::CountIncidentsRequest& request);
bool NeedsStacks(const v1::HistoryQuery::Groups& query);

// Adds what the open incidents have cost since they were stored to the counts that they belong to,
// and sorts the counts anew.
void AddGrowth(const std::vector<v1::Incident>& open, const v1::CountIncidentsRequest& request,
               int64_t now_ns, v1::CountIncidentsResponse* response);

// The same for groups of alike hangs.
void AddGrowth(const std::vector<v1::Incident>& open, const v1::HistoryQuery::Groups& query,
               int64_t now_ns, v1::ListIncidentsResponse* response);

}  // namespace rollcall
