// SPDX-License-Identifier: Apache-2.0
// Which versions of NCCL and of the library a job's ranks run: different ones are a cause of hangs.
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

// By component, then by version; ranks whose version is not known are in none. Of several processes
// of one rank the newest counts: a job that was started again has those of its former life too.
std::vector<VersionInUse> VersionsInUse(const JobState& job);

}  // namespace rollcall
