// SPDX-License-Identifier: Apache-2.0
#include "daemon/rules/members/heard_hosts.h"

#include "daemon/model/progress.h"

namespace rollcall {

HeardHosts::HeardHosts(const JobState& job) : job_(job) {
  for (const AgentState& agent : job.agents) {
    if (agent.silent || agent.stale || agent.heard_ns == 0) continue;
    const AgentState*& newest = agents_[agent.host];
    if (newest == nullptr || newest->first_ns < agent.first_ns) newest = &agent;
  }
}

const AgentState* HeardHosts::FindAgentOn(int32_t process) const {
  const Process* known = FindProcess(job_, process);
  const auto at = known == nullptr ? agents_.end() : agents_.find(known->host);
  return at == agents_.end() ? nullptr : at->second;
}

}  // namespace rollcall
