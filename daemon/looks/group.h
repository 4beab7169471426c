// SPDX-License-Identifier: Apache-2.0
// Groups the processes of looks into jobs, by the marks that they have in common. Pure.
#pragma once

#include <string>
#include <vector>

#include "daemon/looks/looked_at.h"
#include "rollcall/v1/look.pb.h"

namespace rollcall {

struct LookGroup {
  std::string name;               // of the job, or of its script; another one for each group
  std::vector<LookedAt> members;  // by look, then in the look's order
  // Living processes that have ranks of this job as well, which members have: left behind by an
  // earlier run. They are not members, and no group has them.
  std::vector<LookedAt> left_behind;
};

// Two processes are of one job if their best marks are equal, and their users. Where two living
// processes then have one rank, several runs share an address: started_together.h separates them.
std::vector<LookGroup> GroupLooks(const std::vector<v1::HostLook>& looks);

// Whether all ranks of the job run on one host, as far as its marks show.
bool IsOfOneHost(const std::vector<v1::HostLook>& looks, const LookGroup& group);

}  // namespace rollcall
