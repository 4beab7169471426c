// SPDX-License-Identifier: Apache-2.0
#include "daemon/queries/fleet_queries.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/durations.h"
#include "base/steady_clock.h"
#include "daemon/access/access.h"
#include "daemon/queries/metrics.h"
#include "daemon/queries/no_such_job.h"
#include "proto/timestamps.h"

namespace rollcall {
namespace {

template <typename Request>
void SetJob(const JobSelector& job, Request* request) {
  request->set_job(job.job);
  request->set_tenant(job.tenant);
  if (job.attempt.has_value()) request->set_attempt(*job.attempt);
}

v1::StatusRequest StatusOf(const JobSelector& job, bool with_communicators) {
  v1::StatusRequest request;
  SetJob(job, &request);
  request.set_without_communicators(!with_communicators);
  return request;
}

absl::Status NotHere() { return absl::NotFoundError("no such job here"); }

bool Has(const QuerySource& queries, const JobSelector& job) {
  const absl::StatusOr<v1::StatusResponse> status = queries.GetStatus(StatusOf(job, false));
  return status.ok() && !status->jobs().empty();
}

v1::PeerCaller CallerOf(const std::string& name, Role role, const Tenants& tenants) {
  v1::PeerCaller caller;
  caller.set_name(name);
  caller.set_role(std::string(RoleName(role)));
  if (tenants.AreAll()) {
    caller.add_tenants(kAll);
  } else {
    for (const std::string& tenant : tenants.names()) caller.add_tenants(tenant);
  }
  return caller;
}

}  // namespace

FleetQueries::FleetQueries(QuerySource* local, const FleetView* fleet,
                           const JobOwnership* ownership, PeerOptions options)
    : local_(local),
      fleet_(fleet),
      ownership_(ownership),
      peers_(std::make_shared<Peers>(fleet, std::move(options))),
      caller_(CallerOf("this daemon", Role::kViewer, Tenants::All())) {}

FleetQueries::FleetQueries(std::unique_ptr<QuerySource> seen, const FleetQueries& all,
                           v1::PeerCaller caller)
    : seen_(std::move(seen)),
      local_(seen_.get()),
      fleet_(all.fleet_),
      ownership_(all.ownership_),
      peers_(all.peers_),
      caller_(std::move(caller)) {}

std::unique_ptr<QuerySource> FleetQueries::SeenBy(Tenants tenants) const {
  v1::PeerCaller caller = CallerOf(caller_.name(), Role::kViewer, tenants);
  return std::unique_ptr<QuerySource>(
      new FleetQueries(local_->SeenBy(std::move(tenants)), *this, std::move(caller)));
}

std::unique_ptr<QuerySource> FleetQueries::SeenByAgent(const Identity& agent) const {
  v1::PeerCaller caller = CallerOf(agent.name, Role::kAgent, TenantsFor(agent));
  for (const std::string& host : agent.hosts) caller.add_hosts(host);
  return std::unique_ptr<QuerySource>(
      new FleetQueries(local_->SeenByAgent(agent), *this, std::move(caller)));
}

std::unique_ptr<QuerySource> FleetQueries::SeenByCaller(const Identity& caller) const {
  if (!caller.Has(Role::kViewer)) return SeenByAgent(caller);
  const Tenants tenants = TenantsFor(caller);
  return std::unique_ptr<QuerySource>(new FleetQueries(
      local_->SeenByCaller(caller), *this, CallerOf(caller.name, Role::kViewer, tenants)));
}

bool FleetQueries::IsAgent() const { return caller_.role() == RoleName(Role::kAgent); }

// "" where this daemon is alone: no answer names it then.
std::string FleetQueries::NameOfSelf() const {
  return peers_->Others().empty() ? "" : fleet_->self();
}

PeerAsk FleetQueries::AskOf(const DaemonRow& peer, int64_t patience_ns) const {
  PeerAsk ask = {peer, caller_, After(patience_ns)};
  ask.caller.set_daemon(fleet_->self());
  return ask;
}

std::optional<DaemonRow> FleetQueries::OtherOwnerOf(const std::string& tenant,
                                                    const std::string& job) const {
  const bool is_of_one =
      tenant.empty() && caller_.tenants_size() == 1 && caller_.tenants(0) != kAll;
  std::optional<DaemonRow> owner = fleet_->OwnerOf(is_of_one ? caller_.tenants(0) : tenant, job);
  return owner.has_value() && owner->name != fleet_->self() ? owner : std::nullopt;
}

// The answers in the order of `peers`.
template <typename Response, typename Request>
std::vector<absl::StatusOr<Response>> FleetQueries::AskAll(const std::vector<DaemonRow>& peers,
                                                           const Request& request) const {
  using Answer = absl::StatusOr<Response>;
  const int64_t patience_ns = peers_->options().list_patience_ns;
  std::vector<std::function<Answer()>> asks;
  for (const DaemonRow& peer : peers) {
    asks.push_back([peers = peers_, ask = AskOf(peer, patience_ns), request]() -> Answer {
      if (peers->IsPaused(ask.peer)) return peers->Silence(ask.peer);
      return peers->Ask(ask, request);
    });
  }
  std::vector<Answer> answers;
  auto results = AllAtOnce(std::move(asks), After(patience_ns + kSlackNs));
  for (size_t i = 0; i < results.size(); ++i) {
    answers.push_back(results[i].has_value() ? *std::move(results[i]) : peers_->Silence(peers[i]));
  }
  return answers;
}

std::vector<absl::StatusOr<v1::ListIncidentsResponse>> FleetQueries::AskEach(
    const std::vector<DaemonRow>& peers, const v1::ListIncidentsRequest& request) const {
  return AskAll<v1::ListIncidentsResponse>(peers, request);
}

std::vector<absl::StatusOr<v1::Incident>> FleetQueries::AskEach(
    const std::vector<DaemonRow>& peers, const v1::IncidentRequest& request) const {
  return AskAll<v1::Incident>(peers, request);
}

// The others that have the job.
std::vector<DaemonRow> FleetQueries::WhoHas(const JobSelector& job) const {
  const std::vector<DaemonRow> others = peers_->Others();
  const auto answers = AskAll<v1::StatusResponse>(others, StatusOf(job, false));
  std::vector<DaemonRow> owners;
  for (size_t i = 0; i < others.size(); ++i) {
    if (answers[i].ok() && !answers[i]->jobs().empty()) owners.push_back(others[i]);
  }
  return owners;
}

absl::Status FleetQueries::NoSuchJob(const JobSelector& job) const {
  JobSelector all;
  all.most = kMostJobsCompared;
  const Lists lists = ListsOf(all);
  std::vector<JobId> jobs;
  size_t total = 0;
  for (const DaemonJobs& list : lists.jobs) total += list.total;
  for (const FleetJob& one : JoinJobs(lists.jobs, OwnerNames())) {
    const v1::JobStatus& status = lists.jobs[one.daemon].jobs[one.place];
    jobs.push_back({status.tenant(), status.name()});
  }
  absl::Status status = NoSuchJobAmong(jobs, std::max(total, jobs.size()), job.job);
  if (lists.silent.empty()) return status;
  return absl::NotFoundError(absl::StrCat(status.message(), "\n  without the jobs of ",
                                          absl::StrJoin(lists.silent, ", "),
                                          ", which does not answer"));
}

// `here` and `there` ask this daemon and another one, and keep the answer where they succeed.
absl::Status FleetQueries::AboutJob(const JobSelector& job,
                                    const std::function<absl::Status()>& here,
                                    const AskThere& there) const {
  absl::Status away = absl::OkStatus();
  const std::optional<DaemonRow> owner = OtherOwnerOf(job.tenant, job.job);
  if (owner.has_value()) {
    absl::Status status = there(*owner);
    if (!absl::IsNotFound(status) && !absl::IsUnavailable(status)) return status;
    if (absl::IsUnavailable(status)) away = std::move(status);
  }
  absl::Status own = here();
  if (!absl::IsNotFound(own)) return own;
  if (job.job.empty()) return IsAgent() ? own : NoSuchJob(job);
  if (Has(*local_, job)) return own;
  if (!away.ok()) return away;
  for (const DaemonRow& peer : WhoHas(job)) return there(peer);
  if (job.attempt.has_value()) {  // a daemon that has other attempts lists them
    JobSelector any = job;
    any.attempt.reset();
    if (Has(*local_, any)) return own;
    for (const DaemonRow& peer : WhoHas(any)) return there(peer);
  }
  return IsAgent() ? own : NoSuchJob(job);
}

template <typename Response, typename Request>
absl::StatusOr<Response> FleetQueries::AskAboutJob(
    const Request& request,
    absl::StatusOr<Response> (QuerySource::*question)(const Request& request) const,
    std::string* daemon) const {
  absl::StatusOr<Response> answer = NotHere();
  const absl::Status status = AboutJob(
      SelectorIn(request),
      [&] {
        answer = (local_->*question)(request);
        if (daemon != nullptr) *daemon = NameOfSelf();
        return answer.status();
      },
      [&](const DaemonRow& peer) {
        answer = peers_->Ask(AskOf(peer, peers_->options().patience_ns), request);
        if (daemon != nullptr) *daemon = peer.name;
        return answer.status();
      });
  if (!status.ok()) return status;
  return answer;
}

#define QUESTION_OF_JOB(name, Request, Response, ...)                                 \
  absl::StatusOr<v1::Response> FleetQueries::name(const v1::Request& request) const { \
    return AskAboutJob<v1::Response>(request, &QuerySource::name);                    \
  }
#define QUESTION_OF_ANY(name, Request, Response, ...)                                 \
  absl::StatusOr<v1::Response> FleetQueries::name(const v1::Request& request) const { \
    return local_->name(request);                                                     \
  }
#define QUESTION_OF_HISTORY(name, Request, Response, ...)                             \
  absl::StatusOr<v1::Response> FleetQueries::name(const v1::Request& request) const { \
    return IsAgent() ? local_->name(request) : LocalWithOpen()->name(request);        \
  }
#define ACT_OF_ANY(name, Request, Response, ...)                              \
  absl::StatusOr<v1::Response> FleetQueries::name(const v1::Request& request, \
                                                  const std::string& who) {   \
    return local_->name(request, who);                                        \
  }
#include "daemon/access/questions.def"

absl::StatusOr<v1::StatusResponse> FleetQueries::GetStatus(const v1::StatusRequest& request) const {
  if (request.job().empty()) return IsAgent() ? local_->GetStatus(request) : ListJobs(request);
  const JobSelector selector = SelectorIn(request);
  v1::StatusResponse response;
  std::string daemon;
  const absl::Status status = AboutJob(
      selector,
      [&] {
        absl::StatusOr<v1::StatusResponse> own = local_->GetStatus(request);
        if (!own.ok()) return own.status();
        response = *std::move(own);
        daemon = NameOfSelf();
        return response.jobs().empty() ? NotHere() : absl::OkStatus();
      },
      [&](const DaemonRow& peer) {
        auto answer = peers_->Ask(AskOf(peer, peers_->options().patience_ns),
                                  StatusOf(selector, !request.without_communicators()));
        if (!answer.ok()) return answer.status();
        if (answer->jobs().empty()) return NotHere();
        response = *std::move(answer);
        daemon = peer.name;
        return absl::OkStatus();
      });
  for (v1::JobStatus& job : *response.mutable_jobs()) job.set_daemon(daemon);
  if (!status.ok()) {
    for (const DaemonRow& peer : peers_->Others()) {
      if (peers_->IsSilent(peer)) response.add_silent_daemons(peer.name);
    }
  }
  return response;
}

absl::StatusOr<v1::JobView> FleetQueries::GetJob(const v1::JobRequest& request) const {
  std::string daemon;
  absl::StatusOr<v1::JobView> view =
      AskAboutJob<v1::JobView>(request, &QuerySource::GetJob, &daemon);
  if (view.ok()) view->mutable_status()->set_daemon(daemon);
  return view;
}

absl::Status FleetQueries::StreamStacks(
    const v1::TakeStacksRequest& request,
    const std::function<bool(const v1::ProcessStack&)>& on_stack) {
  return AboutJob(
      SelectorIn(request), [&] { return local_->StreamStacks(request, on_stack); },
      [&](const DaemonRow& peer) {
        PeerAsk ask = AskOf(peer, peers_->options().stacks_patience_ns);
        ask.caller.set_role(std::string(RoleName(Role::kOperator)));
        ask.is_action = true;
        bool has_begun = false;
        const absl::Status status =
            peers_->TakeStacks(ask, request, [&](const v1::ProcessStack& stack) {
              has_begun = true;
              return on_stack(stack);
            });
        // No daemon must take them a second time.
        if (status.ok() || !has_begun) return status;
        return absl::AbortedError(status.message());
      });
}

// A running job changes with every tick of its agents, so asking its owner for a version would
// nearly always show that it has changed. Instead, what others have changes once a second: that is
// how often a viewer's answers are made anew, while there are viewers.
uint64_t FleetQueries::Version(const std::string& job) const {
  const uint64_t own = local_->Version(job);
  const bool is_own = !job.empty() && own != 0 && !OtherOwnerOf("", job).has_value();
  if (is_own || peers_->Others().empty()) return own;
  return own + static_cast<uint64_t>(SteadyNs() / kSecond);
}

std::string FleetQueries::GetMetrics(bool open_metrics, const HttpFront::Counts& http) const {
  FleetMetrics fleet;
  for (const DaemonRow& peer : peers_->Others()) {
    if (peers_->IsSilent(peer)) ++fleet.silent;
  }
  fleet.living = fleet_->Daemons().size();
  fleet.holds_lease = fleet_->HoldsLease();
  fleet.jobs = ownership_->CountJobs();
  return WithFleetMetrics(local_->GetMetrics(open_metrics, http), fleet, open_metrics);
}

}  // namespace rollcall
