// SPDX-License-Identifier: Apache-2.0
#include "daemon/looks/diagnosis_proto.h"

#include <string>
#include <utility>

#include "daemon/looks/unanswered.h"

namespace rollcall {
namespace {

using Outcome = LookedAtJob::Outcome;

v1::Diagnosis OneToProto(LookedAtJob job, const std::vector<std::string>& of_hosts) {
  v1::Diagnosis diagnosis;
  diagnosis.set_outcome(OutcomeName(job.outcome));
  diagnosis.set_why(job.why);
  diagnosis.set_ranks(static_cast<int32_t>(job.ranks));
  diagnosis.set_world_size(job.world_size);
  for (std::string& host : job.hosts) diagnosis.add_hosts(std::move(host));
  for (std::string& line : job.unseen) diagnosis.add_unseen(std::move(line));
  for (const std::string& line : of_hosts) diagnosis.add_unseen(line);
  for (LogOfRanks& of : job.logs) {
    v1::DiagnosedLog* log = diagnosis.add_logs();
    log->mutable_ranks()->Assign(of.ranks.begin(), of.ranks.end());
    log->set_host(std::move(of.host));
    log->set_path(of.log.path());
    log->set_quiet_seconds(of.log.quiet_seconds());
    *log->mutable_lines() = std::move(*of.log.mutable_lines());
  }
  *diagnosis.mutable_incident() = std::move(job.incident);
  diagnosis.mutable_incident()->clear_stacks();
  diagnosis.mutable_incident()->clear_stack_tree();
  return diagnosis;
}

}  // namespace

const char* OutcomeName(Outcome outcome) {
  switch (outcome) {
    case Outcome::kHangs:
      return "hangs";
    case Outcome::kCannotTell:
      return "cannot_tell";
    case Outcome::kGoesOn:
      return "goes_on";
  }
  return "";
}

v1::DiagnoseResponse ToProto(std::vector<LookedAtJob> jobs,
                             const std::vector<v1::HostLook>& looks) {
  const std::vector<std::string> of_hosts = UnseenOnHosts(looks);
  v1::DiagnoseResponse response;
  for (const Outcome outcome : {Outcome::kHangs, Outcome::kCannotTell, Outcome::kGoesOn}) {
    for (LookedAtJob& job : jobs) {
      if (job.outcome != outcome) continue;
      KeepUnseen(&job);
      *response.add_jobs() = OneToProto(std::move(job), of_hosts);
    }
  }
  return response;
}

}  // namespace rollcall
