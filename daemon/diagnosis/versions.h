// SPDX-License-Identifier: Apache-2.0
// The versions of NCCL and of the library on the ranks of a job: a difference can cause a hang.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "daemon/model/job_state.h"

namespace rollcall {

struct VersionInUse {
  std::string component;  // "NCCL", "librollcall"
  std::string version;    // "2.27.3"
  std::vector<int32_t> ranks;
};

// The versions in use, by component, then by version. Leaves out ranks without a known version. If
// a rank has several processes (after a restart of the job), takes the newest.
std::vector<VersionInUse> VersionsInUse(const JobState& job);

}  // namespace rollcall
