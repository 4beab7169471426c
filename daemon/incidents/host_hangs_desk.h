// SPDX-License-Identifier: Apache-2.0
// Sends agents which hangs the daemon blames their hosts for, if they ask for it, and if their
// tenants may.
//
// Thread-safe. It sends with its mutex held, which comes before those of AgentService.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "daemon/access/agent_name.h"
#include "rollcall/v1/agent.pb.h"

namespace rollcall {

// The hangs that each host is blamed for, by its name.
using HangsByHost = std::map<std::string, std::vector<v1::HostHangs::Hang>>;

class HostHangsDesk {
 public:
  // Sends a message to the agent with this id. Returns false if that agent is not connected.
  using Send = std::function<bool(const std::string& agent, const v1::DaemonMessage& message)>;

  static constexpr size_t kMostOfHost = 64;

  explicit HostHangsDesk(Send send) : send_(std::move(send)) {}

  // Call it for each stream of the agent. A new stream gets all by the next Update().
  void Connected(const AgentName& agent) ABSL_LOCKS_EXCLUDED(mutex_);
  void Disconnected(const AgentName& agent) ABSL_LOCKS_EXCLUDED(mutex_);

  // Whether Update() is worth its while.
  bool HasAgents() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Call it every second. Agents for which something has changed get a message with all that their
  // hosts are blamed for; a new stream also gets that there is nothing.
  void Update(const HangsByHost& hangs) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Agent {
    AgentName name;
    int streams = 0;
    std::optional<std::string> told;  // the last message, serialized; nullopt if its stream is new
  };

  static v1::HostHangs HangsFor(const Agent& agent, const HangsByHost& hangs);

  const Send send_;
  mutable Mutex mutex_;
  std::map<std::string, Agent> agents_ ABSL_GUARDED_BY(mutex_);  // by id; those that ask for it
};

}  // namespace rollcall
