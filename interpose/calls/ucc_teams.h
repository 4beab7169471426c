// SPDX-License-Identifier: Apache-2.0
// Which team of UCC belongs together on all ranks.
//
// UCC has no name for a team that all members share: an id, where the program gives one, is unique
// in the process only. So a team is known by its members, as numbers in its context, by its id, and
// by how many teams of the same members and id this process has made before. All members of a team
// create it together, so these counts are equal. A context is known by its size and its number
// among those of the process.
//
// Assumed: all ranks create their contexts in one order, and a context has all ranks of the job.
// A context of another size than the job (RANK, WORLD_SIZE and their like) may have a twin on other
// ranks, and a team may have other members than its size shows. Such teams are not recorded.
//
// The wrappers of UCC's calls use this. Nothing here locks, allocates or waits.
#pragma once

#include "interpose/record/comm_table.h"
#include "interpose/ucc_api.h"

namespace rollcall {

void RecordUccContext(const void* context, const UccContextParams& params);
void ForgetUccContext(const void* context);

// False if the members are unknown.
bool DescribeUccTeam(const void* context, const UccTeamParams& params, NewComm* what);

}  // namespace rollcall
