// SPDX-License-Identifier: Apache-2.0
// What agents are asked for when stacks are wanted, and what they answer. Plain values, and the
// functions that make them of a job's state. Pure: any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "daemon/diagnosis/incidents.h"
#include "daemon/model/job_state.h"
#include "rollcall/v1/incident.pb.h"

namespace rollcall {

namespace v1 {
class TakeStacksRequest;
}

// A process whose stacks are wanted.
struct AskedProcess {
  std::string host;
  int32_t pid = 0;
  uint64_t start_time = 0;
  std::string agent;  // the id of the one to ask, whose answer counts; "": nobody speaks for it
  int32_t index = -1;  // in the job's state
  int32_t rank = -1;
  bool is_culprit = false;
};

struct StackRequest {
  std::string job;
  std::string incident;  // "": it is for the start watch, or for people
  bool is_rest = false;  // of the processes that an incident merges and does not keep
  std::vector<AskedProcess> processes;
};

// The stacks of one process of a request.
struct StackAnswer {
  std::string job;
  std::string incident;
  bool is_rest = false;
  int32_t process = -1;  // index in the job's state
  v1::ProcessStack stack;
  bool has_come = true;  // false: no agent was there to ask; the stack says so as its error
};

// For the start watch: these processes, by their index in the job's state.
StackRequest RequestFor(const JobState& state, const std::vector<int32_t>& processes);

// For an incident, which names culprits and ranks itself.
StackRequest RequestFor(const JobState& state, const IncidentEvent& event);

// For people: living processes of the ranks and hosts that they name.
StackRequest RequestFor(const JobState& state, const v1::TakeStacksRequest& wanted);

}  // namespace rollcall
