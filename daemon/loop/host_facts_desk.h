// SPDX-License-Identifier: Apache-2.0
// Asks agents for facts about their hosts, for an incident. Passes the answers to the incident and
// to the rules, within limits.
//
// The diagnosing thread makes requests; answers come on gRPC's threads. Owns the open requests. Its
// mutex comes last in the lock order; it calls the agents, the incident book and the job store with
// no mutex held, and callers must not hold a job's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>

#include "base/mutex.h"
#include "daemon/access/agent_name.h"
#include "daemon/incidents/incident_book.h"
#include "daemon/jobs/daemon_counters.h"
#include "daemon/jobs/job_store.h"
#include "daemon/jobs/timeline.h"
#include "daemon/loop/host_facts_watch.h"
#include "daemon/model/client_limits.h"

namespace rollcall {

namespace v1 {
class DaemonMessage;
class HostFactsReply;
}  // namespace v1

class HostFactsDesk {
 public:
  // Sends a message to the agent with this id. Returns false if that agent is not connected.
  using Send = std::function<bool(const std::string& agent, const v1::DaemonMessage& message)>;

  // Open requests, of one incident and in all. Beyond it a new one removes the oldest, which counts
  // as dropped. When a switch fails, all jobs ask at once.
  static constexpr size_t kOfIncident = 64;
  static constexpr size_t kKept = limits::kJobs;
  // Agents of an earlier release never answer. Others take a minute at most for each of the few
  // requests that wait there.
  static constexpr int64_t kAnswersWithinNs = 600'000'000'000;

  // All must outlive this object.
  HostFactsDesk(Send send, JobStore* store, IncidentBook* incidents, DaemonCounters* counters,
                Timeline* timeline);

  // Returns at once. Does nothing for a request without agents.
  void Request(const HostFactsRequest& request) ABSL_LOCKS_EXCLUDED(mutex_);
  // Ignores an answer that this agent was not asked for, a second one, and one that comes late.
  void OnReply(const AgentName& agent, const v1::HostFactsReply& reply) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Open {
    JobKey job;
    std::string incident;
    std::set<std::string> agents;  // that have not answered
    int64_t asked_ns = 0;
  };

  size_t CloseBeyondLimits(const std::string& incident) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void CloseOld(int64_t now_ns) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Close(std::map<uint64_t, Open>::iterator open) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Send send_;
  JobStore* const store_;
  IncidentBook* const incidents_;
  DaemonCounters* const counters_;
  Timeline* const timeline_;
  Mutex mutex_;
  std::map<uint64_t, Open> open_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, std::set<uint64_t>> by_incident_ ABSL_GUARDED_BY(mutex_);
  uint64_t last_number_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace rollcall
