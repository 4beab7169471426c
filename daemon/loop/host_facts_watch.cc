// SPDX-License-Identifier: Apache-2.0
#include "daemon/loop/host_facts_watch.h"

#include <algorithm>

#include "daemon/model/client_limits.h"
#include "daemon/model/progress.h"

namespace rollcall {
namespace {

// Limits the waiting ranks. A job has up to sixteen ranks on a host.
constexpr size_t kMostWaiting = 16 * limits::kHostsWithFacts;

const AgentState* FindHeardAgent(const JobState& state, int32_t process) {
  const AgentState* agent = FindAgent(state, process);
  return agent == nullptr || agent->silent ? nullptr : agent;
}

}  // namespace

std::vector<int32_t> InvolvedProcesses(const std::vector<Verdict>& verdicts) {
  std::vector<int32_t> involved, waiting;
  for (const Verdict& verdict : verdicts) {
    if (IsWarning(verdict.cause)) continue;
    for (const Culprit& culprit : verdict.culprits) involved.push_back(culprit.process);
    waiting.insert(waiting.end(), verdict.waiting_processes.begin(),
                   verdict.waiting_processes.end());
  }
  const size_t step = std::max<size_t>(1, (waiting.size() + kMostWaiting - 1) / kMostWaiting);
  for (size_t i = 0; i < waiting.size(); i += step) involved.push_back(waiting[i]);
  return involved;
}

HostFactsRequest HostFactsWatch::Next(const JobState& state, const std::string& incident,
                                      const std::vector<int32_t>& involved) {
  HostFactsRequest request;
  if (incident != incident_) {
    incident_ = incident;
    asked_.clear();
  }
  if (incident.empty()) return request;
  request.job = state.key;
  request.incident = incident;
  std::set<std::string> chosen;
  for (const int32_t process : involved) {
    const AgentState* agent = FindHeardAgent(state, process);
    if (agent == nullptr || asked_.size() >= limits::kHostsWithFacts) continue;
    if (asked_.insert(agent->id).second) chosen.insert(agent->id);
  }
  if (chosen.empty()) return request;
  for (size_t i = 0; i < state.processes.size(); ++i) {
    const AgentState* agent = FindHeardAgent(state, static_cast<int32_t>(i));
    const Process& process = state.processes[i];
    if (agent == nullptr || chosen.count(agent->id) == 0) continue;
    std::vector<ProcessKey>& processes = request.agents[agent->id];
    if (processes.size() == kMostFactProcesses) continue;
    processes.push_back({process.host, process.pid, process.start_time});
  }
  return request;
}

}  // namespace rollcall
