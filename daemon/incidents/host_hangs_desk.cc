// SPDX-License-Identifier: Apache-2.0
#include "daemon/incidents/host_hangs_desk.h"

#include <algorithm>

#include "daemon/access/tenant_of.h"

namespace rollcall {

void HostHangsDesk::Connected(const AgentName& agent) {
  if (!agent.wants_host_hangs) return;
  const MutexLock lock(mutex_);
  Agent& known = agents_[agent.id];
  known.name = agent;
  ++known.streams;
  known.told.reset();
}

void HostHangsDesk::Disconnected(const AgentName& agent) {
  const MutexLock lock(mutex_);
  const auto at = agents_.find(agent.id);
  if (at != agents_.end() && --at->second.streams == 0) agents_.erase(at);
}

bool HostHangsDesk::HasAgents() const {
  const MutexLock lock(mutex_);
  return !agents_.empty();
}

// If there are too many, keeps those with broken hardware.
v1::HostHangs HostHangsDesk::HangsFor(const Agent& agent, const HangsByHost& hangs) {
  v1::HostHangs wanted;
  const auto of_host = hangs.find(agent.name.host);
  if (of_host == hangs.end()) return wanted;
  for (const bool is_broken : {true, false}) {
    for (const v1::HostHangs::Hang& hang : of_host->second) {
      if (hang.is_broken() != is_broken || !MayWrite(hang.tenant(), agent.name.tenants)) continue;
      if (static_cast<size_t>(wanted.hangs_size()) < kMostOfHost) *wanted.add_hangs() = hang;
    }
  }
  return wanted;
}

// An agent that does not read loses its stream, and gets all on the next one.
void HostHangsDesk::Update(const HangsByHost& hangs) {
  const MutexLock lock(mutex_);
  for (auto& [id, agent] : agents_) {
    v1::DaemonMessage message;
    *message.mutable_host_hangs() = HangsFor(agent, hangs);
    std::string text = message.host_hangs().SerializeAsString();
    if (agent.told == text) continue;
    if (send_(id, message)) agent.told = std::move(text);
  }
}

}  // namespace rollcall
