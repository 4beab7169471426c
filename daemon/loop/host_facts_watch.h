// SPDX-License-Identifier: Apache-2.0
// Chooses the hosts whose agents shall look at them: those of a suspected hang, once for each
// incident. A healthy job has no incident, and no agent looks at anything. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "daemon/model/job_state.h"
#include "daemon/model/process_key.h"
#include "daemon/model/verdict.h"

namespace rollcall {

struct HostFactsRequest {
  JobKey job;
  std::string incident;
  // The job's processes on each host, by the id of the agent.
  std::map<std::string, std::vector<ProcessKey>> agents;
};

class HostFactsWatch {
 public:
  // The hosts of the processes that these verdicts name and that were not asked for this incident.
  // `incident`: the live one; empty without one.
  HostFactsRequest Next(const JobState& state, const std::string& incident,
                        const std::vector<int32_t>& involved);

 private:
  std::string incident_;
  std::set<std::string> asked_;  // agents
};

// The processes that these verdicts name: culprits first, then waiting ranks spread evenly over
// them. Empty if they are warnings only.
std::vector<int32_t> InvolvedProcesses(const std::vector<Verdict>& verdicts);

}  // namespace rollcall
