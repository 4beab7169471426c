// SPDX-License-Identifier: Apache-2.0
// The daemon among several on one database: what it tells agents, and how it takes over and drops
// jobs.
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "daemon/daemon.h"
#include "rollcall/v1/agent.pb.h"

namespace rollcall {
namespace {

constexpr int64_t kSilencesEveryNs = 2'000'000'000;

bool IsWildcard(const std::string& host) {
  return host == "0.0.0.0" || host == "[::]" || host == "*";
}

std::string HostOfThisMachine() {
  char name[256] = {};
  return gethostname(name, sizeof(name) - 1) == 0 ? std::string(name) : "localhost";
}

}  // namespace

const QuerySource* Daemon::all_queries() const {
  return fleet_queries_ != nullptr ? static_cast<const QuerySource*>(fleet_queries_.get())
                                   : &queries_;
}

QuerySource* Daemon::all_queries() {
  return fleet_queries_ != nullptr ? static_cast<QuerySource*>(fleet_queries_.get()) : &queries_;
}

// An agent leaves a daemon that has none of its host's jobs.
void Daemon::LeaveOutIdle(std::vector<std::string>* hosts) const {
  const std::set<std::string> with_processes = store_.places()->Hosts();
  const auto is_idle = [&](const std::string& host) { return with_processes.count(host) == 0; };
  hosts->erase(std::remove_if(hosts->begin(), hosts->end(), is_idle), hosts->end());
}

std::string Daemon::Address() const {
  if (!options_.advertise.empty()) return options_.advertise;
  if (absl::StartsWith(options_.listen, "unix:")) return options_.listen;
  const std::string host = options_.listen.substr(0, options_.listen.rfind(':'));
  return absl::StrCat(IsWildcard(host) ? HostOfThisMachine() : host, ":", grpc_port());
}

void Daemon::StartFleet() {
  if (fleet_ == nullptr) return;
  Fleet::Hooks hooks;
  hooks.adopt = [this](const JobId& job, Continuation from_earlier) {
    Adopt(job, std::move(from_earlier));
  };
  hooks.prove = [this](const JobId& job) { incidents_.StoreProven(job); };
  hooks.agents = [this](const JobId& job) { return store_.AgentsOf(job); };
  hooks.release = [this](const JobId& job, const std::vector<std::string>& agents) {
    Release(job, agents);
  };
  hooks.tell = [this](const Fleet::Report& report, const std::string& owner) {
    TellOwner(report, owner);
  };
  hooks.has = [this](const JobId& job) {
    return incidents_.HasJob(job) || !store_.jobs().KeysOf(job).empty();
  };
  hooks.with_database = [this](const std::vector<DaemonRow>& daemons) {
    return fleet_queries_->WithDatabase(daemons);
  };
  hooks.take_unknown = [this](const JobId& job) { incidents_.AvoidNumbersOfOthers(job); };
  hooks.has_backlog = [this] { return incidents_.HasBacklog(); };
  hooks.written = [this] { return incidents_.StoredBarrier(); };
  hooks.is_reached = [this](const JobId& job) { return store_.IsHeard(job); };
  hooks.drop = [this](Dropped what) { counters_.CountDropped(what, 1); };
  hooks.is_alerting = [this](const JobId& job) { return incidents_.IsAlerting(job); };
  const std::string page = http_ == nullptr ? "" : page_url();
  fleet_->Start(Address(), options_.alerts.page.empty() ? page : options_.alerts.page,
                std::move(hooks));
}

void Daemon::SeekOwners(const AgentName& agent, const RoutedTick& routed) {
  for (const auto& [job, reported] : routed.not_owned) {
    fleet_->Seek({job, agent.id, agent.follows_owners, reported.first, reported.second});
  }
}

void Daemon::TellOwner(const Fleet::Report& report, const std::string& owner) {
  if (report.follows_owners) {
    v1::DaemonMessage message;
    v1::Owners::Job* job = message.mutable_owners()->add_jobs();
    job->set_tenant(report.tenant);
    job->set_job(report.name);
    job->set_daemon(owner);
    message.mutable_owners()->set_send_whole(owner.empty());
    agents_.Send(report.agent, message);
  } else if (owner.empty()) {
    agents_.Restart(report.agent);  // an older agent sends its whole state to a new stream only
  } else {
    spdlog::warn(
        "an agent of an older release reports the job {} here, but {} has the job: "
        "upgrade the agent, or let it report to that daemon",
        ToText(report.job), owner);
  }
}

void Daemon::KeepSilences() {
  while (!stop_.SleepFor(kSilencesEveryNs)) incidents_.RefreshSilences();
}

void Daemon::Adopt(const JobId& job, Continuation from_earlier) {
  store_.places()->RestoreAttempts(from_earlier.attempts);
  incidents_.Adopt(job, std::move(from_earlier));
  // It may have ended already, so that nothing else leads to a look at its incident.
  if (fleet_->Owns(job)) runners_.Wake(store_.jobs().KeysOf(job));
}

void Daemon::Release(const JobId& job, const std::vector<std::string>& agents) {
  incidents_.Release(job);
  runners_.Wake(store_.jobs().KeysOf(job));
  // Their next streams begin with the names of all jobs, for which they learn the owner.
  for (const std::string& agent : agents) agents_.Restart(agent);
}

}  // namespace rollcall
