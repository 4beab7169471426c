// SPDX-License-Identifier: Apache-2.0
#include "daemon/server/host_hangs_desk.h"

#include <google/protobuf/util/message_differencer.h>

#include "daemon/server/host_hangs.h"

namespace rollcall {

void HostHangsDesk::Connected(const AgentName& agent) {
  if (!agent.wants_host_hangs) return;
  const absl::MutexLock lock(&mutex_);
  agents_[agent.id] = agent.host;
}

void HostHangsDesk::Disconnected(const std::string& agent) {
  const absl::MutexLock lock(&mutex_);
  agents_.erase(agent);
}

void HostHangsDesk::Welcomed(const std::string& agent) {
  const absl::MutexLock lock(&mutex_);
  const auto at = agents_.find(agent);
  if (at != agents_.end()) Tell(agent, at->second);
}

bool HostHangsDesk::HasAgents() const {
  const absl::MutexLock lock(&mutex_);
  return !agents_.empty();
}

void HostHangsDesk::Update(const std::vector<v1::Incident>& open) {
  std::map<std::string, v1::HostHangs> hangs = HangsByHost(open);
  const absl::MutexLock lock(&mutex_);
  hangs_.swap(hangs);
  const auto of = [](const std::map<std::string, v1::HostHangs>& all, const std::string& host) {
    const auto at = all.find(host);
    return at == all.end() ? v1::HostHangs() : at->second;
  };
  for (const auto& [agent, host] : agents_) {
    const bool is_same =
        google::protobuf::util::MessageDifferencer::Equals(of(hangs, host), of(hangs_, host));
    if (!is_same) Tell(agent, host);
  }
}

// An agent that does not read loses its stream, and is told all after the next welcome.
void HostHangsDesk::Tell(const std::string& agent, const std::string& host) {
  v1::DaemonMessage message;
  const auto at = hangs_.find(host);
  *message.mutable_host_hangs() = at == hangs_.end() ? v1::HostHangs() : at->second;
  send_(agent, message);
}

}  // namespace rollcall
