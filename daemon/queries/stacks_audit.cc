// SPDX-License-Identifier: Apache-2.0
#include "daemon/queries/stacks_audit.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "daemon/model/job_key.h"
#include "daemon/words/rank_ranges.h"

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

std::string StacksInWords(const QuerySource& queries, const v1::TakeStacksRequest& request) {
  const std::vector<int32_t> ranks(request.ranks().begin(), request.ranks().end());
  const std::string of_ranks =
      ranks.empty() ? ", all ranks" : absl::StrCat(", ranks ", RankRanges(ranks).List());
  return absl::StrCat("job ", ToText(MeantJob(queries, request)), of_ranks,
                      OnHosts(request.hosts()));
}

std::string LookInWords(const v1::LookRequest& request) {
  const bool is_any = request.tenant().empty();
  const std::string job = is_any ? request.job() : ToText(JobId{request.tenant(), request.job()});
  return absl::StrCat("job ", job, OnHosts(request.hosts()), ", which is not recorded",
                      is_any ? ", of any tenant" : "");
}

}  // namespace rollcall
