// SPDX-License-Identifier: Apache-2.0
// Chooses the processes whose GPUs are dumped: once for each confirmed incident, one culprit and
// one rank that waits. A dump stops a GPU for a moment, so nothing is asked of a job that only may
// hang. Pure.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "daemon/loop/gpu_dump_source.h"
#include "daemon/model/job_state.h"
#include "daemon/model/verdict.h"

namespace rollcall {

// The first culprit of the first hang among the verdicts, and the first rank that waits in it, of
// those whose processes live. Empty if there is no hang.
std::vector<GpuDumpTarget> ChooseGpuDumps(const JobState& state,
                                          const std::vector<Verdict>& verdicts);

class GpuDumpWatch {
 public:
  // `incident`: the confirmed one, or empty. nullopt if there is nothing to ask now.
  std::optional<GpuDumpRequest> Next(const JobKey& job, const std::string& incident,
                                     std::vector<GpuDumpTarget> targets);

 private:
  std::set<std::string> asked_;  // incidents
};

}  // namespace rollcall
