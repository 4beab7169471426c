// SPDX-License-Identifier: Apache-2.0
// The hosts of a job that report, each with its newest agent.
//
// When an agent is restarted, its former run becomes silent. The processes that the new run has not
// reported yet are silent with it. Their host is not lost.
#pragma once

#include <cstdint>
#include <string_view>
#include <unordered_map>

#include "daemon/model/job_state.h"

namespace rollcall {

class HeardHosts {
 public:
  // `job` must outlive this object. Looks at all agents once.
  explicit HeardHosts(const JobState& job);

  // The newest agent of the process's host that reports; nullptr if none reports.
  const AgentState* FindAgentOn(int32_t process) const;

 private:
  const JobState& job_;
  std::unordered_map<std::string_view, const AgentState*> agents_;  // by host
};

}  // namespace rollcall
