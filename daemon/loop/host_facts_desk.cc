// SPDX-License-Identifier: Apache-2.0
#include "daemon/loop/host_facts_desk.h"

#include <utility>

#include "daemon/diagnosis/hosts/own_host_facts.h"
#include "daemon/report/host_facts_proto.h"
#include "rollcall/v1/agent.pb.h"

namespace rollcall {
namespace {

v1::DaemonMessage MessageFor(uint64_t number, const std::vector<ProcessKey>& processes) {
  v1::DaemonMessage message;
  v1::GatherHostFacts* gather = message.mutable_gather_host_facts();
  gather->set_request(number);
  for (const ProcessKey& process : processes) {
    v1::ProcessRef* wanted = gather->add_processes();
    wanted->set_pid(process.pid);
    wanted->set_start_time(process.start_time);
  }
  return message;
}

}  // namespace

HostFactsDesk::HostFactsDesk(Send send, JobStore* store, IncidentBook* incidents,
                             DaemonCounters* counters, Timeline* timeline)
    : send_(std::move(send)),
      store_(store),
      incidents_(incidents),
      counters_(counters),
      timeline_(timeline) {}

void HostFactsDesk::Request(const HostFactsRequest& request) {
  if (request.agents.empty()) return;
  const int64_t now_ns = timeline_->Now();
  uint64_t number = 0;
  size_t dropped = 0;
  {
    const MutexLock lock(mutex_);
    CloseOld(now_ns);
    number = ++last_number_;
    Open& open = open_[number];
    open.job = request.job;
    open.incident = request.incident;
    open.asked_ns = now_ns;
    for (const auto& [agent, processes] : request.agents) open.agents.insert(agent);
    by_incident_[request.incident].insert(number);
    dropped = CloseBeyondLimits(request.incident);
  }
  if (dropped != 0) counters_->CountDropped(Dropped::kHostFacts, dropped);
  for (const auto& [agent, processes] : request.agents) {
    send_(agent, MessageFor(number, processes));
  }
}

void HostFactsDesk::Close(std::map<uint64_t, Open>::iterator open) {
  const auto of_incident = by_incident_.find(open->second.incident);
  of_incident->second.erase(open->first);
  if (of_incident->second.empty()) by_incident_.erase(of_incident);
  open_.erase(open);
}

// Returns how many it has closed.
size_t HostFactsDesk::CloseBeyondLimits(const std::string& incident) {
  const size_t before = open_.size();
  const std::set<uint64_t>& of_incident = by_incident_.at(incident);
  if (of_incident.size() > kOfIncident) Close(open_.find(*of_incident.begin()));
  if (open_.size() > kKept) Close(open_.begin());
  return before - open_.size();
}

// The numbers of requests follow their times.
void HostFactsDesk::CloseOld(int64_t now_ns) {
  while (!open_.empty() && now_ns - open_.begin()->second.asked_ns > kAnswersWithinNs) {
    Close(open_.begin());
  }
}

void HostFactsDesk::OnReply(const AgentName& agent, const v1::HostFactsReply& reply) {
  JobKey job;
  std::string incident;
  const int64_t now_ns = timeline_->Now();
  {
    const MutexLock lock(mutex_);
    CloseOld(now_ns);
    const auto at = open_.find(reply.request());
    if (at == open_.end() || at->second.agents.erase(agent.id) == 0) return;
    job = at->second.job;
    incident = at->second.incident;
    if (at->second.agents.empty()) Close(at);
  }
  HostFacts facts = FromProto(reply.facts(), now_ns);
  store_->Read(job, [&](const JobState& state) { KeepOwnHostFacts(state, agent.host, &facts); });
  incidents_->AddHostFacts(job, incident,
                           WorthALook(agent.host, facts, timeline_->ToWallTime(now_ns)));
  store_->Change(job, [&](JobModel* model) { model->SetHostFacts(agent.host, std::move(facts)); });
}

}  // namespace rollcall
