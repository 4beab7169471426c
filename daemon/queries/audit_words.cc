// SPDX-License-Identifier: Apache-2.0
#include "daemon/queries/audit_words.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "daemon/incidents/silences.h"
#include "daemon/model/job_key.h"
#include "daemon/words/rank_ranges.h"
#include "security/redact.h"

namespace rollcall {
namespace {

JobKey MeantJob(const QuerySource& queries, const v1::TakeStacksRequest& request) {
  if (!request.job().empty()) {
    v1::StatusRequest named;
    named.set_job(request.job());
    named.set_tenant(request.tenant());
    if (request.has_attempt()) named.set_attempt(request.attempt());
    named.set_without_communicators(true);
    const absl::StatusOr<v1::StatusResponse> found = queries.GetStatus(named);
    if (found.ok() && found->jobs_size() == 1) {
      const v1::JobStatus& job = found->jobs(0);
      return {JobId{job.tenant(), request.job()}, job.attempt()};
    }
  }
  return {JobId{request.tenant().empty() ? kDefaultTenant : request.tenant(), request.job()},
          request.attempt()};
}

// The request may name very many.
std::string OnHosts(const google::protobuf::RepeatedPtrField<std::string>& hosts) {
  constexpr int kMostNamed = 8;
  if (hosts.empty()) return "";
  const int named = std::min(hosts.size(), kMostNamed);
  const int more = hosts.size() - named;
  return absl::StrCat(" on ", absl::StrJoin(hosts.begin(), hosts.begin() + named, ", "),
                      more == 0 ? "" : absl::StrCat(" and ", more, " more"));
}

}  // namespace

ActionWords InWords(const QuerySource& queries, const v1::TakeStacksRequest& request) {
  const std::vector<int32_t> ranks(request.ranks().begin(), request.ranks().end());
  const std::string of_ranks =
      ranks.empty() ? ", all ranks" : absl::StrCat(", ranks ", RankRanges(ranks).List());
  return {"take stacks", absl::StrCat("job ", ToText(MeantJob(queries, request)), of_ranks,
                                      OnHosts(request.hosts()))};
}

ActionWords InWords(const QuerySource& /*queries*/, const v1::LookRequest& request) {
  const bool is_any = request.tenant().empty();
  const std::string job = is_any ? request.job() : ToText(JobId{request.tenant(), request.job()});
  return {"diagnose", absl::StrCat("job ", job, OnHosts(request.hosts()), ", which is not recorded",
                                   is_any ? ", of any tenant" : "")};
}

ActionWords InWords(const QuerySource& /*queries*/, const v1::IncidentActionRequest& request) {
  const char* const separator = request.text().empty() ? "" : ": ";
  return {request.action(), absl::StrCat("incident ", request.id(), separator,
                                         DefaultRedactor()->Redact(request.text()))};
}

ActionWords InWords(const QuerySource& /*queries*/, const v1::AddSilenceRequest& request) {
  const v1::Silence& silence = request.silence();
  return {"silence",
          SilenceInWords(silence.tenant(), silence.job(), silence.host(), silence.cause(),
                         absl::FormatDuration(absl::Seconds(request.seconds())))};
}

ActionWords InWords(const QuerySource& /*queries*/, const v1::EndSilenceRequest& request) {
  return {"end silence", request.id()};
}

}  // namespace rollcall
