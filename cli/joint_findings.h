// SPDX-License-Identifier: Apache-2.0
// Joins what segments, dumps of the Flight Recorder, NCCL's RAS and logs report of one job into one
// incident.
//
// The rules judge segments and dumps each on their own: both count calls, but PyTorch counts those
// of a process group and NCCL those of a communicator. The more certain verdict leads; the other
// one is evidence for it, or against it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "cli/error_lines.h"
#include "daemon/model/job_state.h"
#include "rollcall/v1/incident.pb.h"

namespace rollcall {

// Host and process by global rank.
using RankPlaces = std::map<int32_t, std::pair<std::string, int32_t>>;
RankPlaces PlacesOfRanks(const JobState& state);

// Adds to `lead` what the other source reports. `other_name`: "the dumps of the Flight Recorder".
void AddOtherSource(const v1::Incident& other, const std::string& other_name, v1::Incident* lead);

// True if the first incident should lead.
bool IsStronger(const v1::Incident& a, const v1::Incident& b);

// Fills in hosts and processes of culprits that have none.
void AddPlacesOfRanks(const RankPlaces& places, v1::Incident* incident);

// Adds the first error of each rank to the evidence of the root: those of its culprits, and the
// earliest ones in their logs.
void AddErrorLines(std::vector<ErrorLine> errors, const RankPlaces& places, v1::Incident* incident);

}  // namespace rollcall
