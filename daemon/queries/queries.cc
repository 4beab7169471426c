// SPDX-License-Identifier: Apache-2.0
#include "daemon/queries/queries.h"

#include <time.h>

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "base/durations.h"
#include "daemon/access/access.h"
#include "daemon/access/daemon_security.h"
#include "daemon/access/refusals.h"
#include "daemon/history/incident_facts.h"
#include "daemon/history/incident_list.h"
#include "daemon/incidents/incident_actions.h"
#include "daemon/model/cause_name.h"
#include "daemon/queries/metrics.h"
#include "daemon/queries/no_such_job.h"
#include "daemon/report/calls_view.h"
#include "daemon/report/communicator_view.h"
#include "daemon/report/job_view.h"
#include "daemon/report/processes_view.h"
#include "daemon/report/status_view.h"
#include "daemon/words/rank_ranges.h"
#include "proto/timestamps.h"

namespace rollcall {
namespace {

absl::Status CheckFactKind(const std::string& kind) {
  if (IsFactKind(kind)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("\"by\" is one of ",
                                                 absl::StrJoin(FactKinds(), ", "), " and ",
                                                 kLabelKind, "NAME; not \"", kind, "\""));
}

// A running job without calls that has waited for this many seconds has the state "waiting".
constexpr double kLeastWaitSeconds = 2;
constexpr double kDaySeconds = 86'400;
constexpr int64_t kClocksDifferNs = 60 * kSecond;  // of a browser and the daemon
constexpr char kTwin[] =
    "another job with this name was alive when this one began: each is an attempt of its own";

// These two move the times of calls to the wall clock.
void MoveCalls(int64_t by_ns, v1::CommunicatorCalls* calls) {
  const double seconds = static_cast<double>(by_ns) / 1e9;
  if (calls->ended_seconds() != 0) calls->set_ended_seconds(calls->ended_seconds() + seconds);
  for (v1::CallSpan& span : *calls->mutable_calls()) {
    span.set_entered_seconds(span.entered_seconds() + seconds);
    if (span.returned_seconds() == 0) continue;
    span.set_returned_seconds(span.returned_seconds() + seconds);
  }
}

void MoveCalls(int64_t by_ns, v1::CallsResponse* response) {
  for (v1::RankCalls& rank : *response->mutable_ranks()) {
    for (v1::CommunicatorCalls& calls : *rank.mutable_communicators()) MoveCalls(by_ns, &calls);
  }
}

bool Waits(const v1::JobStatus& status) {
  return status.state() == "running" && status.calls_per_second() == 0 &&
         std::any_of(status.communicators().begin(), status.communicators().end(),
                     [](const v1::CommunicatorStatus& comm) {
                       return comm.waited_seconds() >= kLeastWaitSeconds;
                     });
}

}  // namespace

std::unique_ptr<QuerySource> Queries::SeenBy(Tenants tenants) const {
  return std::make_unique<Queries>(parts_, std::move(tenants));
}

std::unique_ptr<QuerySource> Queries::SeenByAgent(const Identity& agent) const {
  return std::make_unique<Queries>(parts_, TenantsFor(agent), agent);
}

std::unique_ptr<QuerySource> Queries::WithNewer(std::vector<v1::Incident> newer) const {
  auto with_newer = std::make_unique<Queries>(*this);
  with_newer->newer_ = std::move(newer);
  return with_newer;
}

std::unique_ptr<QuerySource> Queries::SeenByCaller(const Identity& caller) const {
  if (!caller.Has(Role::kViewer)) return SeenByAgent(caller);
  return std::make_unique<Queries>(parts_, TenantsFor(caller), std::nullopt, caller.name);
}

bool Queries::Sees(const JobKey& key) const {
  if (!tenants_.Has(key.tenant)) return false;
  if (!agent_.has_value()) return true;
  bool is_of_its_hosts = false;
  parts_.store->Read(key, [&](const JobState& state) {
    is_of_its_hosts =
        std::any_of(state.agents.begin(), state.agents.end(),
                    [this](const AgentState& one) { return agent_->MaySpeakFor(one.host); });
  });
  return is_of_its_hosts;
}

std::optional<JobKey> Queries::Find(const JobSelector& selector) const {
  const std::optional<JobKey> key =
      parts_.store->jobs().Find(selector.tenant, selector.job, selector.attempt, tenants_);
  return key.has_value() && Sees(*key) ? key : std::nullopt;
}

absl::Status Queries::NoSuchJob(const JobSelector& selector) const {
  if (agent_.has_value()) {
    return absl::NotFoundError(
        absl::StrCat("no job \"", selector.job, "\" on the hosts of ", agent_->name));
  }
  const std::optional<JobKey> newest =
      parts_.store->jobs().Find(selector.tenant, selector.job, std::nullopt, tenants_);
  if (selector.attempt.has_value() && newest.has_value()) {
    std::vector<int32_t> attempts;
    for (const JobIndex::AttemptRef& known : parts_.store->jobs().AttemptsFor(*newest)) {
      attempts.push_back(known.key.attempt);
    }
    return absl::NotFoundError(
        absl::StrCat("job \"", selector.job, "\" has no attempt ", *selector.attempt, "; it has ",
                     attempts.size() == 1 ? "attempt " : "attempts ", RankRanges(attempts).List()));
  }
  std::vector<JobId> jobs;
  for (const JobKey& key : parts_.store->jobs().NewestKeys(kMostJobsCompared, tenants_)) {
    jobs.push_back(static_cast<const JobId&>(key));
  }
  return NoSuchJobAmong(jobs, parts_.store->jobs().CountJobs(tenants_), selector.job);
}

// Returns the newest attempts: first of the jobs with an open incident, then of the others, both by
// name.
std::vector<JobKey> Queries::JobsInOrder() const {
  std::vector<JobKey> keys = parts_.store->jobs().NewestKeys(SIZE_MAX, tenants_);
  const std::set<JobKey> open = parts_.incidents->reader().OpenJobs();
  std::stable_partition(keys.begin(), keys.end(),
                        [&open](const JobKey& key) { return open.count(key) != 0; });
  return keys;
}

bool Queries::RunsOn(const JobKey& key, const std::string& host) const {
  bool runs = false;
  parts_.store->Read(key, [&](const JobState& state) {
    runs = std::any_of(state.processes.begin(), state.processes.end(),
                       [&host](const Process& process) { return process.host == host; });
  });
  return runs;
}

// The newest attempt of the job that has had a process on the host.
std::optional<JobKey> Queries::NewestOn(const JobKey& key, const std::string& host) const {
  for (const JobIndex::AttemptRef& attempt : parts_.store->jobs().AttemptsFor(key)) {
    if (RunsOn(attempt.key, host)) return attempt.key;
  }
  return std::nullopt;
}

// The part of the list that the selector asks for. Sets the number of jobs in the whole list.
std::vector<JobKey> Queries::ListJobs(const JobSelector& selector, size_t* total) const {
  std::vector<JobKey> keys;
  for (const JobKey& key : JobsInOrder()) {
    if (selector.host.empty()) {
      keys.push_back(key);
    } else if (const std::optional<JobKey> attempt = NewestOn(key, selector.host)) {
      keys.push_back(*attempt);
    }
  }
  *total = keys.size();
  keys.erase(keys.begin(),
             keys.begin() + static_cast<ptrdiff_t>(std::min(selector.offset, keys.size())));
  if (keys.size() > selector.most) keys.resize(selector.most);
  return keys;
}

void Queries::AddIncidents(const JobKey& key, v1::JobStatus* status) const {
  JobBrief brief = parts_.incidents->reader().Brief(key);
  for (std::string& warning : brief.warnings) status->add_warnings(std::move(warning));
  if (brief.last.has_value()) status->mutable_last_incident()->Swap(&*brief.last);
  AddReferral(key, status);
  if (!brief.live.has_value()) return;
  status->set_state(brief.live->is_confirmed ? "hung" : "suspected");
  status->set_summary(brief.live->summary);
}

// The job that shows why the job waits. The job that reports it has a newer answer than the last
// look.
void Queries::AddReferral(const JobKey& key, v1::JobStatus* status) const {
  if (parts_.pairs == nullptr) return;
  const std::optional<Referral> referral = parts_.pairs->ReferralOf(key);
  if (!referral) return;
  v1::WaitedJob* waits_for = status->mutable_waits_for();
  waits_for->set_tenant(referral->teller.tenant);
  waits_for->set_job(referral->teller.job);
  waits_for->set_attempt(referral->teller.attempt);
  const std::optional<JobBrief::Live> live =
      parts_.incidents->reader().Brief(referral->teller).live;
  if (live) waits_for->set_incident(live->id);
  waits_for->set_summary(live ? live->summary : referral->summary);
}

void Queries::AddAttempts(const JobKey& key, int64_t now_ns, v1::JobStatus* status) const {
  for (const JobIndex::AttemptRef& other : parts_.store->jobs().AttemptsFor(key)) {
    if (other.key == key) {
      if (other.has_twin) status->add_warnings(kTwin);
      continue;
    }
    if (!Sees(other.key)) continue;
    v1::JobStatus whole;
    AddJobStatus(other.key, now_ns, false, &whole);
    v1::AttemptStatus* attempt = status->add_attempts();
    attempt->set_attempt(other.key.attempt);
    attempt->set_state(whole.state());
    attempt->set_processes(whole.processes());
    attempt->set_processes_alive(whole.processes_alive());
    attempt->set_since(whole.since());
    attempt->set_processes_died(whole.processes_died());
    if (whole.has_ended_at()) *attempt->mutable_ended_at() = whole.ended_at();
    if (!whole.has_last_incident()) continue;
    attempt->mutable_last_incident()->Swap(whole.mutable_last_incident());
  }
}

void Queries::AddJobStatus(const JobKey& key, int64_t now_ns, bool with_communicators,
                           v1::JobStatus* status) const {
  parts_.store->Read(key, [&](const JobState& state) {
    FillJobStatus(state, now_ns, with_communicators, status,
                  parts_.timeline->ToWallTime(now_ns) - now_ns);
  });
  status->set_calls_per_second(parts_.rates->Now(key));
  AddIncidents(key, status);
  if (Waits(*status)) status->set_state("waiting");
}

void Queries::AddUnrecorded(const JobSelector& selector, v1::StatusResponse* response) const {
  if (selector.offset != 0 || parts_.unrecorded == nullptr) return;
  for (v1::UnrecordedJob& job : parts_.unrecorded->Jobs(tenants_, NsOf(response->now()))) {
    const bool is_there = selector.host.empty() ||
                          std::count(job.hosts().begin(), job.hosts().end(), selector.host) > 0;
    if (is_there) *response->add_unrecorded() = std::move(job);
  }
}

// The names of hosts are not for viewers of some tenants only.
void Queries::AddReleases(const JobSelector& selector, v1::StatusResponse* response) const {
  if (selector.offset != 0 || !tenants_.AreAll()) return;
  for (v1::AgentRelease& one : parts_.store->agents()->Releases()) {
    *response->add_agent_releases() = std::move(one);
  }
}

absl::StatusOr<v1::StatusResponse> Queries::GetStatus(const v1::StatusRequest& request) const {
  return StatusOf(SelectorIn(request), !request.without_communicators());
}

// Returns the status of the selected job, or of the newest attempt of every job if the selector
// names none.
v1::StatusResponse Queries::StatusOf(const JobSelector& selector, bool with_communicators) const {
  v1::StatusResponse response;
  response.set_rollcall_version(ROLLCALL_VERSION);
  const int64_t now_ns = parts_.timeline->Now();
  *response.mutable_now() = ToTimestamp(parts_.timeline->ToWallTime(now_ns));
  response.set_agents(parts_.agents->agents());
  std::vector<JobKey> keys;
  if (selector.job.empty() && !agent_.has_value()) {
    JobSelector page = selector;
    page.most = std::min(selector.most, kMaxJobsListed);
    size_t total = 0;
    keys = ListJobs(page, &total);
    response.set_jobs_total(static_cast<int32_t>(total));
    AddUnrecorded(selector, &response);
    AddReleases(selector, &response);
  } else if (const std::optional<JobKey> key = Find(selector)) {
    keys.push_back(*key);
  }
  for (const JobKey& key : keys) {
    v1::JobStatus* status = response.add_jobs();
    AddJobStatus(key, now_ns, with_communicators, status);
    AddAttempts(key, now_ns, status);
  }
  return response;
}

absl::StatusOr<v1::JobView> Queries::GetPast(const JobKey& key, int64_t at_ns) const {
  const int64_t now_ns = parts_.timeline->Now();
  const int64_t wall_ns = parts_.timeline->ToWallTime(now_ns);
  if (at_ns > wall_ns + kClocksDifferNs) {
    return absl::InvalidArgumentError(absl::StrCat(
        "\"at\" is in the future: the daemon's clock shows ",
        absl::FormatTime(absl::RFC3339_sec, absl::FromUnixNanos(wall_ns), absl::UTCTimeZone())));
  }
  absl::StatusOr<v1::JobView> view = parts_.past->Find(key, at_ns);
  if (!view.ok()) return view;
  // Links lead to all attempts, and later ones were unknown then.
  v1::JobStatus present;
  AddAttempts(key, now_ns, &present);
  view->mutable_status()->mutable_attempts()->Swap(present.mutable_attempts());
  return view;
}

absl::StatusOr<v1::JobView> Queries::GetJob(const v1::JobRequest& request) const {
  const JobSelector selector = SelectorIn(request);
  const std::optional<JobKey> key = Find(selector);
  if (key.has_value() && selector.at_ns != 0) return GetPast(*key, selector.at_ns);
  v1::StatusResponse status = StatusOf(selector, true);
  if (!key.has_value() || status.jobs().empty()) return NoSuchJob(selector);
  v1::JobView view;
  *view.mutable_now() = status.now();
  view.mutable_status()->Swap(status.mutable_jobs(0));
  KeepWorstCommunicators(kMaxCommunicatorsShown, view.mutable_status());
  parts_.store->Read(*key, [&](const JobState& state) { FillRankMaps(state, &view); });
  const std::optional<int64_t> kept_from_ns = parts_.past->Oldest(*key);
  if (kept_from_ns.has_value()) *view.mutable_kept_from() = ToTimestamp(*kept_from_ns);
  const CallRate rate = parts_.rates->Get(*key);
  for (const double calls : rate.history()) view.add_calls_per_second(calls);
  const JobBrief brief = parts_.incidents->reader().Brief(*key);
  if (!brief.live.has_value()) return view;
  view.set_incident(brief.live->id);
  for (const int32_t rank : brief.live->culprits) view.add_culprits(rank);
  return view;
}

absl::StatusOr<v1::CallsResponse> Queries::GetCalls(const v1::CallsRequest& request) const {
  v1::CallsResponse response;
  const int64_t now_ns = parts_.timeline->Now();
  const int64_t wall_ns = parts_.timeline->ToWallTime(now_ns);
  *response.mutable_now() = ToTimestamp(wall_ns);
  const std::vector<int32_t> ranks(request.ranks().begin(), request.ranks().end());
  const int limit = request.limit() <= 0 ? kUsualCalls : request.limit();
  const std::optional<JobKey> key = Find(SelectorIn(request));
  if (!key.has_value()) return NoSuchJob(SelectorIn(request));
  parts_.store->Read(*key,
                     [&](const JobState& state) { FillCalls(state, ranks, limit, &response); });
  MoveCalls(wall_ns - now_ns, &response);
  return response;
}

absl::StatusOr<v1::CommunicatorView> Queries::GetCommunicator(
    const v1::CommunicatorRequest& request) const {
  v1::CommunicatorView view;
  const int64_t now_ns = parts_.timeline->Now();
  const int64_t wall_ns = parts_.timeline->ToWallTime(now_ns);
  *view.mutable_now() = ToTimestamp(wall_ns);
  const std::optional<JobKey> key = Find(SelectorIn(request));
  if (!key.has_value()) return NoSuchJob(SelectorIn(request));
  bool found = false;
  parts_.store->Read(*key, [&](const JobState& state) {
    found = FillCommunicatorView(state, now_ns, request, &view);
  });
  if (!found) {
    return absl::NotFoundError(absl::StrCat("attempt ", key->attempt, " of job \"", request.job(),
                                            "\" has no communicator with the id \"", request.id(),
                                            "\"; its page lists those it has"));
  }
  for (v1::MemberView& member : *view.mutable_members()) {
    MoveCalls(wall_ns - now_ns, member.mutable_calls());
  }
  return view;
}

absl::StatusOr<v1::ProcessesResponse> Queries::ListProcesses(
    const v1::ProcessesRequest& request) const {
  v1::ProcessesResponse response;
  const std::optional<JobKey> key = Find(SelectorIn(request));
  if (!key.has_value()) return NoSuchJob(SelectorIn(request));
  parts_.store->Read(*key, [&](const JobState& state) {
    FillProcesses(state, parts_.timeline->Now(), request, &response);
  });
  return response;
}

// False if none of the asked tenants is left. To the book, an empty list would be for all tenants.
template <typename Request>
bool Queries::KeepOwnTenants(Request* request) const {
  const google::protobuf::RepeatedPtrField<std::string> asked = request->tenants();
  request->clear_tenants();
  for (const std::string& tenant : tenants_.names()) {
    const bool is_asked =
        asked.empty() || std::find(asked.begin(), asked.end(), tenant) != asked.end();
    if (is_asked) request->add_tenants(tenant);
  }
  return !request->tenants().empty();
}

absl::StatusOr<v1::ListIncidentsResponse> Queries::ListIncidents(
    const v1::ListIncidentsRequest& request) const {
  if (!request.cause().empty()) {
    const absl::Status cause = CheckCauseName(request.cause());
    if (!cause.ok()) return cause;
  }
  v1::ListIncidentsRequest mine = request;
  if (agent_.has_value()) {
    mine.set_live_only(true);
    mine.set_grouped(false);
  }
  if (!tenants_.AreAll() && !KeepOwnTenants(&mine)) return v1::ListIncidentsResponse();
  absl::StatusOr<v1::ListIncidentsResponse> response =
      parts_.incidents->reader().List(mine, newer_);
  if (!response.ok() || !agent_.has_value()) return response;
  auto& incidents = *response->mutable_incidents();
  incidents.erase(
      std::remove_if(incidents.begin(), incidents.end(),
                     [this](const v1::Incident& one) { return !Sees(ReadJobKey(one)); }),
      incidents.end());
  response->set_total(incidents.size());
  return response;
}

absl::StatusOr<v1::CountIncidentsResponse> Queries::CountIncidents(
    const v1::CountIncidentsRequest& request) const {
  absl::Status status =
      request.cause().empty() ? absl::OkStatus() : CheckCauseName(request.cause());
  if (status.ok()) status = CheckFactKind(request.by());
  if (!status.ok()) return status;
  v1::CountIncidentsRequest mine = request;
  if (agent_.has_value()) return v1::CountIncidentsResponse();
  if (!tenants_.AreAll() && !KeepOwnTenants(&mine)) return v1::CountIncidentsResponse();
  const HistoryCaller caller = {who_, {mine.tenants().begin(), mine.tenants().end()}};
  return parts_.incidents->reader().Ask(mine, newer_, caller);
}

absl::StatusOr<v1::Incident> Queries::GetIncident(const v1::IncidentRequest& request) const {
  absl::StatusOr<v1::Incident> incident = parts_.incidents->reader().Get(request.id());
  if (!incident.ok() || tenants_.Has(ReadJobKey(*incident).tenant)) return incident;
  return NoSuchIncident(request.id());
}

// Answers without the stacks, which the caller has seen.
absl::StatusOr<v1::Incident> Queries::ActOnIncident(const v1::IncidentActionRequest& request,
                                                    const std::string& who) {
  v1::IncidentRequest same;
  same.set_id(request.id());
  const absl::StatusOr<v1::Incident> seen = GetIncident(same);
  if (!seen.ok()) return seen;
  const int64_t now_ns = parts_.timeline->ToWallTime(parts_.timeline->Now());
  const absl::Status changed =
      parts_.incidents->actions().Change(request.id(), [&](v1::Incident* incident) {
        if (request.action() == "note") return AddNote(who, request.text(), now_ns, incident);
        if (request.action() == "acknowledge") return Acknowledge(who, now_ns, incident);
        return TakeBackAcknowledgement(incident);
      });
  if (!changed.ok()) return changed;
  parts_.incidents->actions().AwaitSaved();
  absl::StatusOr<v1::Incident> incident = GetIncident(same);
  if (!incident.ok()) return incident;
  incident->clear_stacks();
  incident->clear_stack_tree();
  return incident;
}

absl::StatusOr<v1::ListSilencesResponse> Queries::ListSilences(
    const v1::ListSilencesRequest& /*request*/) const {
  v1::ListSilencesResponse response;
  *response.mutable_now() = ToTimestamp(parts_.timeline->ToWallTime(parts_.timeline->Now()));
  for (v1::Silence& silence : parts_.incidents->reader().ListSilences(tenants_)) {
    *response.add_silences() = std::move(silence);
  }
  return response;
}

absl::StatusOr<v1::Silence> Queries::AddSilence(const v1::AddSilenceRequest& request,
                                                const std::string& who) {
  const auto silence =
      parts_.incidents->actions().AddSilence(request.silence(), request.seconds(), who, tenants_);
  if (silence.ok()) parts_.incidents->actions().AwaitSaved();
  return silence;
}

absl::StatusOr<v1::Silence> Queries::EndSilence(const v1::EndSilenceRequest& request,
                                                const std::string& /*who*/) {
  const auto silence = parts_.incidents->actions().EndSilence(request.id(), tenants_);
  if (silence.ok()) parts_.incidents->actions().AwaitSaved();
  return silence;
}

absl::Status Queries::StreamStacks(const v1::TakeStacksRequest& request,
                                   const std::function<bool(const v1::ProcessStack&)>& on_stack) {
  const std::optional<JobKey> key = Find(SelectorIn(request));
  if (!key.has_value()) return NoSuchJob(SelectorIn(request));
  return parts_.stacks->Stream(*key, request, on_stack);
}

absl::StatusOr<std::vector<v1::HostLook>> Queries::LookAtJob(const v1::LookRequest& request,
                                                             const std::function<bool()>& goes_on) {
  JobSelector named;
  named.job = request.job();
  named.tenant = request.tenant();
  absl::StatusOr<std::vector<v1::HostLook>> looks =
      parts_.looks->Look(request, tenants_, who_, goes_on);
  if (!absl::IsNotFound(looks.status()) || request.job().empty() || !Find(named).has_value()) {
    return looks;
  }
  return absl::FailedPreconditionError(
      absl::StrCat("job \"", request.job(), "\" is recorded, and needs no look: rollcall status ",
                   request.job()));
}

// Other tenants' jobs must not show by their changes either.
uint64_t Queries::Version(const std::string& job) const {
  if (job.empty() && tenants_.AreAll()) {
    return parts_.store->Changes() + parts_.incidents->reader().Changes() +
           static_cast<uint64_t>(parts_.agents->agents()) + UnrecordedVersion() +
           (parts_.pairs == nullptr ? 0 : parts_.pairs->Changes());
  }
  const std::vector<JobKey> keys = job.empty() ? parts_.store->jobs().NewestKeys(SIZE_MAX, tenants_)
                                               : parts_.store->jobs().AllKeys(job);
  uint64_t version = job.empty() ? UnrecordedVersion() : 0;
  for (const JobKey& key : keys) {
    if (!tenants_.Has(key.tenant)) continue;
    version += 1 + parts_.store->Version(key) + parts_.incidents->reader().Changes(key);
    if (parts_.pairs != nullptr) version += parts_.pairs->Changes(key);
  }
  return version;
}

std::string Queries::GetMetrics(bool open_metrics, const HttpFront::Counts& http) const {
  MetricsSnapshot snapshot;
  snapshot.version = ROLLCALL_VERSION;
  snapshot.http = http;
  snapshot.agents = parts_.agents->agents();
  snapshot.deliveries = parts_.incidents->reader().CountDeliveries();
  snapshot.daemon = parts_.counters->Get();
  snapshot.refused = parts_.refusals->Get();
  if (parts_.security != nullptr && parts_.security->tls() != nullptr) {
    snapshot.certificate_days =
        static_cast<double>(parts_.security->tls()->expires_s() - time(nullptr)) / kDaySeconds;
  }
  const int64_t now_ns = parts_.timeline->Now();
  snapshot.jobs_total = parts_.store->jobs().CountJobs(tenants_);
  JobSelector measured;
  measured.most = kMaxJobsMeasured;
  size_t listed = 0;
  for (const JobKey& key : ListJobs(measured, &listed)) {
    JobMetrics& metrics = snapshot.jobs.emplace_back();
    AddJobStatus(key, now_ns, true, &metrics.status);
    metrics.incidents = parts_.incidents->reader().CountIncidents(key, now_ns);
    parts_.store->Read(key,
                       [&](const JobState& state) { metrics.records_lost = RecordsLost(state); });
  }
  return MetricsText(snapshot, open_metrics);
}

}  // namespace rollcall
