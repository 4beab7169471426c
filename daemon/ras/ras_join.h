// SPDX-License-Identifier: Apache-2.0
// Joins what NCCL's RAS reports with what the stacks show of one job. Pure.
//
// RAS counts the calls that each rank has launched: exact, but of one moment, and it has neither
// where a rank stands nor the number that it has in the job. The stacks show where a rank stands,
// and count nothing. Where both blame the same ranks, the verdict is likely.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "daemon/ras/ras_output.h"
#include "rollcall/v1/look.pb.h"

namespace rollcall {

// A rank of the job as the look at its hosts sees it.
struct RasMember {
  int32_t rank = -1;  // in the job
  std::string host;
  int32_t pid = 0;
  int32_t inner_pid = 0;  // in its own pid namespace, as RAS reports it; 0 means the same
};

// Puts host, process and number in the job in place of what RAS reports, for the processes that
// belong to the job. RAS names a node by an address: it is the host with most of the processes that
// RAS names there, and of which all ranks have the numbers that RAS gives them in a communicator of
// the whole job: in pods, several hosts have processes of the same numbers. Where two hosts fit, or
// two nodes fit one host, nothing is placed. `communicators`: of ReadRasMembers(). Returns how many
// of the ranks it found.
size_t PlaceRasRanks(const std::vector<RasMember>& members,
                     const std::vector<std::vector<RasRank>>& communicators,
                     std::vector<RasFinding>* findings);

// Returns one finding for each communicator: of several operations, their sum, because a rank that
// is ahead with one of them may be behind with all together. `left_out`, if not null: the number of
// findings for which RasBudget has no room, each of which leaves out its communicator.
std::vector<RasFinding> SumUp(const std::vector<RasFinding>& findings, size_t* left_out = nullptr);

// Adds to the incident what RAS has reported of its job. Without verdicts of its own, the incident
// has the verdict of RAS, `possible`. Never `certain`. Whether two answers of one job, some seconds
// apart, count the same calls. False if they differ, or one is missing.
bool HaveSameCounts(const v1::RasAnswer& first, const v1::RasAnswer& second);

void JoinRas(const v1::RasAnswer& answer, const std::vector<RasMember>& members,
             v1::Incident* incident);

}  // namespace rollcall
