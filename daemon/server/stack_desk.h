// SPDX-License-Identifier: Apache-2.0
// The one place where stacks are asked for: for incidents, for the watch on jobs that do not start,
// and for people. Asks the agents, and hands what they answer to whoever asked.
//
// The diagnosing thread and those of servers ask; agents' answers come on gRPC's threads. Owns the
// book of open requests, and has no lock besides that book's. It calls the agents, the incident
// book and the job store with no lock held; callers must not hold a job's.
#pragma once

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "daemon/server/agent_name.h"
#include "daemon/server/incident_book.h"
#include "daemon/server/job_store.h"
#include "daemon/server/stack_request.h"
#include "daemon/server/stack_requests.h"
#include "daemon/server/timeline.h"

namespace rollcall {

namespace v1 {
class DaemonMessage;
class StackReply;
}  // namespace v1

class StackDesk {
 public:
  // To the agent of this id. False: it is not connected.
  using Send = std::function<bool(const std::string& agent, const v1::DaemonMessage& message)>;

  // All outlive this object.
  StackDesk(Send send, JobStore* store, IncidentBook* incidents, Timeline* timeline);

  // For an incident or the start watch. Returns at once.
  void Ask(const StackRequest& request);

  // For people: `on_stack` is called with the stacks of each process as they come, and ends it by
  // returning false. Returns when all have come, or some seconds have passed; who has not answered
  // by then is told of with an error. kNotFound: says what there is.
  absl::Status Stream(const v1::TakeStacksRequest& request,
                      const std::function<bool(const v1::ProcessStack&)>& on_stack);

  void OnStack(const AgentName& agent, const v1::StackReply& reply);

  // Nobody in Stream() waits any more, from now on: the daemon stops.
  void Close() { requests_.Close(); }

 private:
  void SendToAgents(uint64_t number, const StackRequest& request);
  void HandOver(const StackAnswer& answer);

  const Send send_;
  JobStore* const store_;
  IncidentBook* const incidents_;
  Timeline* const timeline_;
  StackRequests requests_;
};

}  // namespace rollcall
