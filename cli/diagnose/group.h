// SPDX-License-Identifier: Apache-2.0
// Groups the processes of looks into jobs, by the marks that they have in common. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "rollcall/v1/look.pb.h"

namespace rollcall {

// A process by the index of its look, and by its own in that look.
struct LookedAt {
  size_t look = 0;
  int process = 0;
  bool operator==(const LookedAt& other) const {
    return look == other.look && process == other.process;
  }
};

struct LookGroup {
  std::string name;               // of the job, or of its script; another one for each group
  std::vector<LookedAt> members;  // by look, then in the look's order
};

// Two processes are of one job if their best marks are equal, and their users. Where two living
// processes of a host then have one rank, two jobs share an address: who started them tells them
// apart.
std::vector<LookGroup> GroupLooks(const std::vector<v1::HostLook>& looks);

// Whether all ranks of the job run on one host, as far as its marks show.
bool IsOfOneHost(const std::vector<v1::HostLook>& looks, const LookGroup& group);

}  // namespace rollcall
