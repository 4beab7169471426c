// SPDX-License-Identifier: Apache-2.0
#include "daemon/server/queries.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "daemon/report/stack_merge.h"
#include "daemon/server/metrics.h"
#include "daemon/server/views/calls_view.h"
#include "daemon/server/views/job_view.h"
#include "daemon/server/views/processes_view.h"
#include "daemon/server/views/status.h"
#include "proto/durations.h"

namespace rollcall {
namespace {

// A job that makes no calls and has waited for so long is said to wait.
constexpr double kWorthSaying = 2;

google::protobuf::Timestamp ToTime(int64_t ns) {
  google::protobuf::Timestamp time;
  time.set_seconds(ns / kSecond);
  time.set_nanos(static_cast<int32_t>(ns % kSecond));
  return time;
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

bool Waits(const v1::JobStatus& status) {
  return status.state() == "running" && status.calls_per_second() == 0 &&
         std::any_of(status.communicators().begin(), status.communicators().end(),
                     [](const v1::CommunicatorStatus& comm) {
                       return comm.waited_seconds() >= kWorthSaying;
                     });
}

}  // namespace

absl::Status Queries::NoSuchJob(const std::string& job) const {
  const std::string jobs = absl::StrJoin(parts_.store->JobNames(), ", ");
  return absl::NotFoundError(
      absl::StrCat("no job \"", job, "\"; ", jobs.empty() ? "there is none" : "there is ", jobs));
}

void Queries::AddWhatIncidentsTell(v1::JobStatus* status) const {
  JobBrief brief = parts_.incidents->Brief(status->name());
  for (std::string& warning : brief.warnings) status->add_warnings(std::move(warning));
  if (brief.last.has_value()) status->mutable_last_incident()->Swap(&*brief.last);
  if (!brief.live.has_value()) return;
  status->set_state(brief.live->is_confirmed ? "hung" : "suspected");
  status->set_summary(brief.live->summary);
}

void Queries::AddJobStatus(const std::string& name, int64_t now_ns, bool with_communicators,
                           v1::JobStatus* status) const {
  parts_.store->Read(name, [&](const JobState& state) {
    FillJobStatus(state, now_ns, with_communicators, status,
                  parts_.timeline->ToWallTime(now_ns) - now_ns);
  });
  status->set_calls_per_second(parts_.rates->Now(name));
  AddWhatIncidentsTell(status);
  if (Waits(*status)) status->set_state("waiting");
}

v1::StatusResponse Queries::GetStatus(const std::string& job, bool with_communicators) const {
  v1::StatusResponse response;
  response.set_rollcall_version(ROLLCALL_VERSION);
  const int64_t now_ns = parts_.timeline->Now();
  *response.mutable_now() = ToTime(parts_.timeline->ToWallTime(now_ns));
  response.set_agents(parts_.agents->agents());
  for (const std::string& name : parts_.store->JobNames()) {
    if (!job.empty() && name != job) continue;
    AddJobStatus(name, now_ns, with_communicators, response.add_jobs());
  }
  return response;
}

absl::StatusOr<v1::JobView> Queries::GetJob(const std::string& job) const {
  v1::StatusResponse status = GetStatus(job, true);
  if (job.empty() || status.jobs().empty()) return NoSuchJob(job);
  v1::JobView view;
  *view.mutable_now() = status.now();
  view.mutable_status()->Swap(status.mutable_jobs(0));
  KeepMostTelling(kMaxCommunicatorsShown, view.mutable_status());
  parts_.store->Read(job, [&](const JobState& state) { FillRankMaps(state, &view); });
  const CallRate rate = parts_.rates->Get(job);
  for (const double calls : rate.history()) view.add_calls_per_second(calls);
  const JobBrief brief = parts_.incidents->Brief(job);
  if (!brief.live.has_value()) return view;
  view.set_incident(brief.live->id);
  for (const int32_t rank : brief.live->culprits) view.add_culprits(rank);
  return view;
}

absl::StatusOr<v1::CallsResponse> Queries::GetCalls(const v1::CallsRequest& request) const {
  v1::CallsResponse response;
  const int64_t now_ns = parts_.timeline->Now();
  const int64_t wall_ns = parts_.timeline->ToWallTime(now_ns);
  *response.mutable_now() = ToTime(wall_ns);
  const std::vector<int32_t> ranks(request.ranks().begin(), request.ranks().end());
  const int limit = request.limit() <= 0 ? kUsualCalls : request.limit();
  bool known = false;
  parts_.store->Read(request.job(), [&](const JobState& state) {
    known = true;
    FillCalls(state, ranks, limit, &response);
  });
  if (!known) return NoSuchJob(request.job());
  MoveCalls(wall_ns - now_ns, &response);
  return response;
}

absl::StatusOr<v1::ProcessesResponse> Queries::ListProcesses(
    const v1::ProcessesRequest& request) const {
  v1::ProcessesResponse response;
  bool known = false;
  parts_.store->Read(request.job(), [&](const JobState& state) {
    known = true;
    FillProcesses(state, parts_.timeline->Now(), request, &response);
  });
  if (!known) return NoSuchJob(request.job());
  return response;
}

absl::StatusOr<v1::ListIncidentsResponse> Queries::ListIncidents(
    const v1::ListIncidentsRequest& request) const {
  return parts_.incidents->List(request);
}

absl::StatusOr<v1::Incident> Queries::GetIncident(const std::string& id) const {
  return parts_.incidents->Get(id);
}

absl::Status Queries::StreamStacks(const v1::TakeStacksRequest& request,
                                   const std::function<bool(const v1::ProcessStack&)>& on_stack) {
  return parts_.stacks->Stream(request, on_stack);
}

absl::StatusOr<v1::StacksResponse> Queries::GetStacks(const v1::TakeStacksRequest& request) {
  v1::StacksResponse response;
  *response.mutable_now() = ToTime(parts_.timeline->ToWallTime(parts_.timeline->Now()));
  StackTree tree;
  const absl::Status status = StreamStacks(request, [&](const v1::ProcessStack& stack) {
    AddToTree(stack, stack.rank(), &tree);
    *response.add_stacks() = stack;
    return true;
  });
  if (!status.ok()) return status;
  *response.mutable_tree() = ToProto(tree);
  return response;
}

uint64_t Queries::Version(const std::string& job) const {
  uint64_t version = parts_.incidents->Changes(job);
  for (const std::string& name : parts_.store->JobNames()) {
    if (job.empty() || name == job) version += parts_.store->Version(name);
  }
  return version + (job.empty() ? static_cast<uint64_t>(parts_.agents->agents()) : 0);
}

std::string Queries::GetMetrics(bool open_metrics, const HttpFront::Counts& http) const {
  MetricsSnapshot snapshot;
  snapshot.version = ROLLCALL_VERSION;
  snapshot.http = http;
  snapshot.agents = parts_.agents->agents();
  snapshot.deliveries = parts_.incidents->Delivered();
  snapshot.daemon = parts_.counters->Get();
  const int64_t now_ns = parts_.timeline->Now();
  const v1::StatusResponse status = GetStatus("", true);
  for (const v1::JobStatus& job : status.jobs()) {
    JobMetrics& metrics = snapshot.jobs.emplace_back();
    metrics.status = job;
    metrics.incidents = parts_.incidents->CountIncidents(job.name(), now_ns);
    parts_.store->Read(job.name(), [&](const JobState& state) {
      metrics.records_lost = RecordsLost(state);
    });
  }
  return MetricsText(snapshot, open_metrics);
}

}  // namespace rollcall
