// SPDX-License-Identifier: Apache-2.0
#include "cli/job_pages.h"

namespace rollcall {

bool FetchJobs(v1::StatusRequest request, const AskStatus& ask, v1::StatusResponse* all) {
  all->Clear();
  request.set_limit(kJobsOfPage);
  while (true) {
    request.set_offset(all->jobs_size());
    v1::StatusResponse page;
    if (!ask(request, &page)) return false;
    const bool is_last = page.jobs().empty();
    all->MergeFrom(page);
    if (is_last || all->jobs_size() >= page.jobs_total()) return true;
  }
}

}  // namespace rollcall
