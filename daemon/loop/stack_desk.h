// SPDX-License-Identifier: Apache-2.0
// Sends stack requests to agents: for incidents, for the watch on jobs that do not start, and for
// people. Passes the replies to the requester.
//
// The diagnosing thread and those of servers make requests; replies come on gRPC's threads. Owns
// the open requests, and has no mutex besides theirs. It calls the agents, the incident book and
// the job store with no mutex held; callers must not hold a job's.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "daemon/access/agent_name.h"
#include "daemon/agents/stack_request.h"
#include "daemon/agents/stack_requests.h"
#include "daemon/incidents/incident_book.h"
#include "daemon/jobs/daemon_counters.h"
#include "daemon/jobs/job_store.h"
#include "daemon/jobs/timeline.h"

namespace rollcall {

namespace v1 {
class DaemonMessage;
class StackReply;
}  // namespace v1

class StackDesk {
 public:
  // Sends a message to the agent with this id. Returns false if that agent is not connected.
  using Send = std::function<bool(const std::string& agent, const v1::DaemonMessage& message)>;

  // All must outlive this object. `counters`: counts the requests that it forgets; nullptr if
  // nothing is counted.
  StackDesk(Send send, JobStore* store, IncidentBook* incidents, Timeline* timeline,
            DaemonCounters* counters = nullptr);

  // Makes a request for an incident or the start watch. Returns at once.
  void Request(const StackRequest& wanted);

  // Makes a request for a person. Calls `on_stack` with the stacks of each process as they come;
  // ends early when it returns false. Returns when all have come, or after some seconds; a process
  // without a reply then gets an error. kNotFound lists the jobs there are.
  absl::Status Stream(const JobKey& job, const v1::TakeStacksRequest& request,
                      const std::function<bool(const v1::ProcessStack&)>& on_stack);

  void OnStackReply(const AgentName& agent, const v1::StackReply& reply);

  // Ends the waits of Stream(), now and later: the daemon stops.
  void Close() { requests_.Close(); }

 private:
  void SendToAgents(uint64_t number, const StackRequest& request);
  void RemoveOtherRanks(StackResult* result);
  void NameCallingThreads(StackResult* result);
  std::shared_ptr<const Standing> StandingWith(const StackResult& result, int64_t now_ns) const;
  void KeepNetwork(const StackResult& result);
  void Deliver(const StackResult& result);

  const Send send_;
  JobStore* const store_;
  IncidentBook* const incidents_;
  Timeline* const timeline_;
  DaemonCounters* const counters_;
  StackRequests requests_;
};

}  // namespace rollcall
