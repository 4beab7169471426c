// SPDX-License-Identifier: Apache-2.0
// Stack requests, their results, and functions that make requests from a job's state. Plain values.
// Pure: any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "daemon/diagnosis/life/incident_life.h"
#include "daemon/model/job_state.h"
#include "rollcall/v1/incident.pb.h"

namespace rollcall {

namespace v1 {
class TakeStacksRequest;
}

// A process of a stack request.
struct RequestedProcess {
  std::string host;
  int32_t pid = 0;
  uint64_t start_time = 0;
  std::string agent;   // id of the agent that must reply; empty if no agent reports the process
  int32_t index = -1;  // in the job's state
  int32_t rank = -1;
  bool is_culprit = false;
};

// What a request is for; its results have the same.
struct StackPurpose {
  JobKey job;
  std::string incident;              // empty means a request of the start watch, or of a person
  bool is_rest = false;              // for processes that an incident merges and does not list
  bool children = false;             // with the threads of what the processes have started
  std::vector<uint64_t> network_of;  // with the transfers of these communicators over the network
  bool only_network = false;         // without stacks
  int64_t asked_ns = 0;  // when it was sent, by the daemon's clock: all samples are younger
};

struct StackRequest : StackPurpose {
  std::vector<RequestedProcess> processes;
};

// The result for one process of a request.
struct StackResult : StackPurpose {
  int32_t process = -1;  // index in the job's state
  v1::ProcessStack stack;
  bool is_reply = true;  // false: the agent was not connected, and the stack has that error
};

// A request of the start watch. `processes` are indices in the job's state.
StackRequest MakeStackRequest(const JobState& state, const std::vector<int32_t>& processes);

// Returns a request of an incident, with its culprits and ranks.
StackRequest MakeStackRequest(const JobState& state, const IncidentEvent& event);

// Returns a request of a person, for the living processes of the given ranks and hosts.
StackRequest MakeStackRequest(const JobState& state, const v1::TakeStacksRequest& wanted);

}  // namespace rollcall
