// SPDX-License-Identifier: Apache-2.0
// Tells agents which hangs the daemon blames their hosts for, if they want to know.
//
// Thread-safe. Its mutex comes last in the lock order; it sends with no mutex held, but its own, which
// keeps the messages of an agent in order.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "daemon/server/agent_name.h"
#include "rollcall/v1/agent.pb.h"
#include "rollcall/v1/incident.pb.h"

namespace rollcall {

class HostHangsDesk {
 public:
  // Sends a message to the agent with this id. Returns false if that agent is not connected.
  using Send = std::function<bool(const std::string& agent, const v1::DaemonMessage& message)>;

  explicit HostHangsDesk(Send send) : send_(std::move(send)) {}

  void Connected(const AgentName& agent) ABSL_LOCKS_EXCLUDED(mutex_);
  // Its last stream has ended.
  void Disconnected(const std::string& agent) ABSL_LOCKS_EXCLUDED(mutex_);
  // The agent gets all that its host is blamed for, also if that is nothing: what it had been told by an
  // earlier stream is no longer true.
  void Welcomed(const std::string& agent) ABSL_LOCKS_EXCLUDED(mutex_);

  // Whether Update() is worth its while.
  bool HasAgents() const ABSL_LOCKS_EXCLUDED(mutex_);
  // `open`: all open incidents. The agents of hosts for which something has changed get a message.
  void Update(const std::vector<v1::Incident>& open) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  void Tell(const std::string& agent, const std::string& host) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Send send_;
  mutable absl::Mutex mutex_;
  std::map<std::string, std::string> agents_ ABSL_GUARDED_BY(mutex_);  // ids, and their hosts
  std::map<std::string, v1::HostHangs> hangs_ ABSL_GUARDED_BY(mutex_);  // by host
};

}  // namespace rollcall
