// SPDX-License-Identifier: Apache-2.0
#include "daemon/server/known_hosts.h"

#include <utility>

namespace rollcall {

void KnownHosts::Restore(std::set<std::string> hosts) {
  recorded_ = hosts;
  missing_ = std::move(hosts);
}

std::vector<std::string> KnownHosts::Update(const JobState& state, int64_t now_ns) {
  if (!missing_.empty()) {
    for (const AgentState& agent : state.agents) {
      // Its first ticks may hold a part of its state only.
      if (agent.is_settled && !agent.silent) missing_.erase(agent.host);
    }
  }
  if (recorded_ns_ == 0) recorded_ns_ = now_ns;
  const bool is_old = now_ns - recorded_ns_ >= kRecordEveryNs;
  if (agents_ == state.agents.size() && !recorded_.empty() && !is_old) return {};
  agents_ = state.agents.size();
  if (is_old) {
    recorded_ns_ = now_ns;
    recorded_.clear();
  }
  std::vector<std::string> fresh;
  for (const AgentState& agent : state.agents) {
    if (recorded_.insert(agent.host).second) fresh.push_back(agent.host);
  }
  return fresh;
}

}  // namespace rollcall
