// SPDX-License-Identifier: Apache-2.0
#include "daemon/agents/stack_request.h"

#include <algorithm>
#include <map>

#include "daemon/diagnosis/network_evidence.h"
#include "daemon/model/progress.h"
#include "rollcall/v1/query.pb.h"

namespace rollcall {
namespace {

// The rank of a process in an incident's verdicts, and whether they blame it.
struct RankRole {
  int32_t rank = -1;
  bool is_culprit = false;
};

std::map<int32_t, RankRole> RolesIn(const std::vector<Verdict>& verdicts) {
  std::map<int32_t, RankRole> roles;  // by the process's index
  for (const Verdict& verdict : verdicts) {
    const size_t waiting = std::min(verdict.waiting_ranks.size(), verdict.waiting_processes.size());
    for (size_t i = 0; i < waiting; ++i) {
      roles[verdict.waiting_processes[i]].rank = verdict.waiting_ranks[i];
    }
    for (const Culprit& culprit : verdict.culprits) {
      roles[culprit.process] = {culprit.rank, true};
    }
  }
  return roles;
}

RequestedProcess MakeRequestedProcess(const JobState& state, int32_t index) {
  const Process& process = state.processes[static_cast<size_t>(index)];
  const AgentState* agent = FindAgent(state, index);
  RequestedProcess requested;
  requested.host = process.host;
  requested.pid = process.pid;
  requested.start_time = process.start_time;
  requested.agent = agent == nullptr ? "" : agent->id;
  requested.index = index;
  requested.rank = process.global_rank;
  return requested;
}

template <typename Repeated, typename Value>
bool AllOrAmong(const Repeated& wanted, const Value& value) {
  return wanted.empty() || std::find(wanted.begin(), wanted.end(), value) != wanted.end();
}

}  // namespace

StackRequest MakeStackRequest(const JobState& state, const std::vector<int32_t>& processes) {
  StackRequest request;
  request.job = state.key;
  for (const int32_t index : processes) {
    request.processes.push_back(MakeRequestedProcess(state, index));
  }
  return request;
}

StackRequest MakeStackRequest(const JobState& state, const IncidentEvent& event) {
  StackRequest request = MakeStackRequest(state, event.take_stacks_of);
  request.incident = event.incident.id;
  request.is_rest = event.kind == IncidentEvent::Kind::kTakeStacksOfRest;
  request.network_of = StalledCommunicators(event.incident.verdicts);
  request.only_network = event.kind == IncidentEvent::Kind::kTakeTransfers;
  if (request.is_rest || request.only_network) return request;
  const std::map<int32_t, RankRole> roles = RolesIn(event.incident.verdicts);
  for (RequestedProcess& process : request.processes) {
    const auto role = roles.find(process.index);
    if (role == roles.end()) continue;
    process.rank = role->second.rank;
    process.is_culprit = role->second.is_culprit;
  }
  return request;
}

StackRequest MakeStackRequest(const JobState& state, const v1::TakeStacksRequest& wanted) {
  std::vector<int32_t> processes;
  for (size_t i = 0; i < state.processes.size(); ++i) {
    const Process& process = state.processes[i];
    const auto index = static_cast<int32_t>(i);
    if (HowProcessEnded(state, index) == Gone::kNo &&
        AllOrAmong(wanted.ranks(), process.global_rank) &&
        AllOrAmong(wanted.hosts(), process.host)) {
      processes.push_back(index);
    }
  }
  return MakeStackRequest(state, processes);
}

}  // namespace rollcall
