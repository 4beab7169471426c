// SPDX-License-Identifier: Apache-2.0
#include "daemon/server/job_diagnosis.h"

#include <algorithm>
#include <utility>

#include "daemon/server/views/public_ranks.h"
#include "daemon/server/views/status.h"

namespace rollcall {
namespace {

bool AllEnded(const JobState& state) {
  return std::all_of(state.processes.begin(), state.processes.end(), [](const Process& process) {
    return HasEnded(process);
  });
}

}  // namespace

void JobDiagnosis::LookAtAll(int64_t now_ns) {
  for (const std::string& name : parts_.store->JobNames()) LookAt(name, now_ns);
}

void JobDiagnosis::LookAt(const std::string& name, int64_t now_ns) {
  const uint64_t version = parts_.store->Version(name);
  Job& job = jobs_[name];
  if (IsOver(name, job, version)) {
    if (now_ns - job.ended_ns > keep_ended_ns_) Forget(name);
    return;
  }
  parts_.store->UpdateHeard(name, parts_.timeline->counts_from_ns());
  std::vector<StackRequest> requests;
  parts_.store->Read(
      name, [&](const JobState& state) { requests = Diagnose(state, now_ns, &job); });
  job.version = version;
  for (const StackRequest& request : requests) parts_.stacks->Ask(request);
}

std::vector<StackRequest> JobDiagnosis::Diagnose(const JobState& state, int64_t now_ns, Job* job) {
  std::vector<Verdict> verdicts = job->diagnoser.Run(state, now_ns, limits_);
  if (parts_.rates->IsDue(state.name, now_ns)) {
    parts_.rates->Count(state.name, now_ns, CallsEntered(state), PublicRanks(state).count());
  }
  const std::vector<int32_t> at_start = job->start.Next(state, now_ns, limits_);
  std::vector<StackRequest> requests =
      parts_.incidents->Apply(state, std::move(verdicts), now_ns);
  if (!at_start.empty()) requests.push_back(RequestFor(state, at_start));
  if (!AllEnded(state)) {
    job->ended_ns = 0;
  } else if (job->ended_ns == 0) {
    job->ended_ns = now_ns;
  }
  return requests;
}

// A job whose processes have all ended changes no more.
bool JobDiagnosis::IsOver(const std::string& name, const Job& job, uint64_t version) const {
  return job.ended_ns != 0 && job.version == version && !parts_.incidents->HasLive(name);
}

void JobDiagnosis::Forget(const std::string& name) {
  parts_.store->Forget(name);
  parts_.incidents->Forget(name);
  parts_.rates->Forget(name);
  jobs_.erase(name);
}

}  // namespace rollcall
