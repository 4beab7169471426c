// SPDX-License-Identifier: Apache-2.0
#include "daemon/queries/stacks_audit.h"

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

}  // namespace

std::string StacksInWords(const QuerySource& queries, const v1::TakeStacksRequest& request) {
  const std::vector<int32_t> ranks(request.ranks().begin(), request.ranks().end());
  const std::string of_ranks =
      ranks.empty() ? ", all ranks" : absl::StrCat(", ranks ", RankRanges(ranks).List());
  const std::string on_hosts =
      request.hosts().empty() ? "" : absl::StrCat(" on ", absl::StrJoin(request.hosts(), ", "));
  return absl::StrCat("job ", ToText(MeantJob(queries, request)), of_ranks, on_hosts);
}

std::string LookInWords(const v1::LookRequest& request) {
  const std::string tenant = request.tenant().empty() ? kDefaultTenant : request.tenant();
  const std::string on_hosts =
      request.hosts().empty() ? "" : absl::StrCat(" on ", absl::StrJoin(request.hosts(), ", "));
  return absl::StrCat("job ", ToText(JobId{tenant, request.job()}), on_hosts,
                      ", which is not recorded");
}

}  // namespace rollcall
