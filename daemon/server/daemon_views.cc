// The daemon's answers to people and scripts.
#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "daemon/report/stack_merge.h"
#include "daemon/server/daemon.h"
#include "daemon/server/http.h"
#include "daemon/server/metrics.h"
#include "daemon/server/views/calls_view.h"
#include "daemon/server/views/job_view.h"
#include "daemon/server/views/processes_view.h"
#include "daemon/server/views/status.h"

namespace rollcall {
namespace {

constexpr int64_t kSecond = 1'000'000'000;
// A job that makes no calls and has waited for so long is said to wait.
constexpr double kWorthSaying = 2;

google::protobuf::Timestamp ToTime(int64_t ns) {
  google::protobuf::Timestamp time;
  time.set_seconds(ns / kSecond);
  time.set_nanos(static_cast<int32_t>(ns % kSecond));
  return time;
}

v1::IncidentSummary Summarized(const v1::Incident& incident) {
  v1::IncidentSummary summary;
  summary.set_id(incident.id());
  summary.set_state(incident.state());
  if (!incident.verdicts().empty()) {
    summary.set_cause(incident.verdicts(0).cause());
    summary.set_summary(incident.verdicts(0).summary());
  }
  *summary.mutable_opened_at() = incident.opened_at();
  return summary;
}

// Brings the times of calls onto the wall clock, as that of `now` is.
void MoveCalls(int64_t by_ns, v1::CallsResponse* response) {
  const double seconds = static_cast<double>(by_ns) / 1e9;
  for (v1::RankCalls& rank : *response->mutable_ranks()) {
    for (v1::CommunicatorCalls& calls : *rank.mutable_communicators()) {
      for (v1::CallSpan& span : *calls.mutable_calls()) {
        span.set_entered_seconds(span.entered_seconds() + seconds);
        if (span.returned_seconds() == 0) continue;
        span.set_returned_seconds(span.returned_seconds() + seconds);
      }
    }
  }
}

absl::Status NoSuchJob(const std::string& job, const std::string& jobs) {
  return absl::NotFoundError(
      absl::StrCat("no job \"", job, "\"; ", jobs.empty() ? "there is none" : "there is ", jobs));
}

}  // namespace

std::string Daemon::Jobs() const { return absl::StrJoin(store_.JobNames(), ", "); }

void Daemon::AddWhatIncidentsTell(v1::JobStatus* status) const {
  const absl::MutexLock lock(&mutex_);
  const auto at = jobs_.find(status->name());
  if (at == jobs_.end()) return;
  const JobWatch& watch = at->second;
  for (const std::string& warning : watch.warnings) status->add_warnings(warning);
  status->set_calls_per_second(watch.rate.now());
  if (!watch.incidents.empty()) {
    *status->mutable_last_incident() = Summarized(watch.incidents.back().incident);
  }
  if (!watch.life.live()) return;
  const Incident& incident = *watch.life.live();
  status->set_state(incident.state == IncidentState::kConfirmed ? "hung" : "suspected");
  status->set_summary(incident.verdicts.front().summary);
}

v1::StatusResponse Daemon::GetStatus(const std::string& job, bool with_communicators) const {
  v1::StatusResponse response;
  response.set_rollcall_version(ROLLCALL_VERSION);
  const int64_t now_ns = timeline_.Now();
  *response.mutable_now() = ToTime(timeline_.WallOf(now_ns));
  response.set_agents(agents_->agents());
  for (const std::string& name : store_.JobNames()) {
    if (!job.empty() && name != job) continue;
    v1::JobStatus* status = response.add_jobs();
    store_.Read(name, [&](const JobState& state) {
      FillJobStatus(state, now_ns, with_communicators, status, timeline_.WallOf(now_ns) - now_ns);
    });
    AddWhatIncidentsTell(status);
    const auto waits = [](const v1::CommunicatorStatus& comm) {
      return comm.waited_seconds() >= kWorthSaying;
    };
    if (status->state() == "running" && status->calls_per_second() == 0 &&
        std::any_of(status->communicators().begin(), status->communicators().end(), waits)) {
      status->set_state("waiting");
    }
  }
  return response;
}

absl::StatusOr<v1::JobView> Daemon::GetJob(const std::string& job) const {
  v1::StatusResponse status = GetStatus(job);
  if (job.empty() || status.jobs().empty()) return NoSuchJob(job, Jobs());
  v1::JobView view;
  *view.mutable_now() = status.now();
  view.mutable_status()->Swap(status.mutable_jobs(0));
  KeepMostTelling(kMaxCommunicatorsShown, view.mutable_status());
  store_.Read(job, [&](const JobState& state) { FillRankMaps(state, &view); });
  const absl::MutexLock lock(&mutex_);
  const auto at = jobs_.find(job);
  if (at == jobs_.end()) return view;
  for (const double rate : at->second.rate.history()) view.add_calls_per_second(rate);
  if (at->second.life.live()) {
    view.set_incident(at->second.life.live()->id);
    for (const Culprit& culprit : at->second.life.live()->verdicts.front().culprits) {
      view.add_culprits(culprit.rank);
    }
  }
  return view;
}

absl::StatusOr<v1::CallsResponse> Daemon::GetCalls(const v1::CallsRequest& request) const {
  v1::CallsResponse response;
  const int64_t now_ns = timeline_.Now();
  *response.mutable_now() = ToTime(timeline_.WallOf(now_ns));
  const std::vector<int32_t> ranks(request.ranks().begin(), request.ranks().end());
  const int limit = request.limit() <= 0 ? kUsualCalls : request.limit();
  bool known = false;
  store_.Read(request.job(), [&](const JobState& state) {
    known = true;
    FillCalls(state, ranks, limit, &response);
  });
  if (!known) return NoSuchJob(request.job(), Jobs());
  MoveCalls(timeline_.WallOf(now_ns) - now_ns, &response);
  return response;
}

absl::StatusOr<v1::ProcessesResponse> Daemon::ListProcesses(
    const v1::ProcessesRequest& request) const {
  v1::ProcessesResponse response;
  bool known = false;
  store_.Read(request.job(), [&](const JobState& state) {
    known = true;
    FillProcesses(state, timeline_.Now(), request, &response);
  });
  if (!known) return NoSuchJob(request.job(), Jobs());
  return response;
}

absl::StatusOr<v1::StacksResponse> Daemon::GetStacks(const v1::TakeStacksRequest& request) {
  v1::StacksResponse response;
  *response.mutable_now() = ToTime(timeline_.WallOf(timeline_.Now()));
  StackTree tree;
  const absl::Status status = TakeStacks(request, [&](const v1::ProcessStack& stack) {
    AddToTree(stack, stack.rank(), &tree);
    *response.add_stacks() = stack;
    return true;
  });
  if (!status.ok()) return status;
  *response.mutable_tree() = ToProto(tree);
  return response;
}

uint64_t Daemon::Version(const std::string& job) const {
  uint64_t version = 0;
  for (const std::string& name : store_.JobNames()) {
    if (job.empty() || name == job) version += store_.Version(name);
  }
  const absl::MutexLock lock(&mutex_);
  for (const auto& [name, watch] : jobs_) {
    if (!job.empty() && name == job) version += watch.changes;
  }
  return version + (job.empty() ? changes_ + static_cast<uint64_t>(agents_->agents()) : 0);
}

std::string Daemon::GetMetrics(bool open_metrics) const {
  MetricsSnapshot snapshot;
  snapshot.version = ROLLCALL_VERSION;
  snapshot.agents = agents_->agents();
  snapshot.alerts_sent = alerts_->sent();
  snapshot.alerts_failed = alerts_->failed();
  snapshot.alerts_waiting = alerts_->waiting();
  snapshot.reports = reports_->counts();
  snapshot.history = history_->counts();
  if (http_ != nullptr) snapshot.http = http_->counts();
  const int64_t now_ns = timeline_.Now();
  const v1::StatusResponse status = GetStatus("");
  std::map<std::string, uint64_t> lost;
  for (const std::string& name : store_.JobNames()) {
    store_.Read(name, [&](const JobState& state) { lost[name] = RecordsLost(state); });
  }
  const absl::MutexLock lock(&mutex_);
  snapshot.dropped_agent_ticks = counters_.dropped_agent_ticks;
  snapshot.ticks = counters_.ticks;
  snapshot.tick_seconds = counters_.tick_seconds;
  for (const v1::JobStatus& job : status.jobs()) {
    JobMetrics& metrics = snapshot.jobs.emplace_back();
    metrics.status = job;
    metrics.records_lost = lost[job.name()];
    const auto at = jobs_.find(job.name());
    if (at == jobs_.end()) continue;
    metrics.incidents_by_cause = at->second.incidents_by_cause;
    metrics.hung_seconds = at->second.hung_seconds;
    if (!at->second.life.live()) continue;
    const Incident& live = *at->second.life.live();
    metrics.open_cause = CauseName(live.verdicts.front().cause);
    if (live.state == IncidentState::kConfirmed) {
      metrics.hung_seconds[metrics.open_cause] +=
          static_cast<double>(now_ns - live.opened_ns) / 1e9;
    }
  }
  return MetricsText(snapshot, open_metrics);
}

}  // namespace rollcall
