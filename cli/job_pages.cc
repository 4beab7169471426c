// SPDX-License-Identifier: Apache-2.0
#include "cli/job_pages.h"

#include <cstdint>
#include <set>
#include <string>
#include <tuple>
#include <utility>

namespace rollcall {
namespace {

// Jobs come, end and change their places while the pages are read.
constexpr int kMostTries = 3;

using Key = std::tuple<std::string, std::string, int64_t>;
enum class Pages { kWhole, kMoved, kNoAnswer };

Key KeyOf(const v1::JobStatus& job) { return {job.tenant(), job.name(), job.attempt()}; }

// Adds the jobs that `*all` lacks, and the rest of the answer.
void JoinPages(v1::StatusResponse page, std::set<Key>* known, v1::StatusResponse* all) {
  for (v1::JobStatus& job : *page.mutable_jobs()) {
    if (known->insert(KeyOf(job)).second) all->add_jobs()->Swap(&job);
  }
  page.clear_jobs();
  std::set<std::string> silent(all->silent_daemons().begin(), all->silent_daemons().end());
  silent.insert(page.silent_daemons().begin(), page.silent_daemons().end());
  page.clear_silent_daemons();
  if (!all->unrecorded().empty())
    page.clear_unrecorded();  // two pages may begin with the first job
  all->MergeFrom(page);
  all->clear_silent_daemons();
  for (const std::string& name : silent) all->add_silent_daemons(name);
}

// Each page after the first begins with the last job of the page before: if that is another job
// now, the jobs have moved. `goes_on`: reads on nevertheless.
Pages ReadPages(v1::StatusRequest request, const AskStatus& ask, bool goes_on,
                v1::StatusResponse* all) {
  std::set<Key> known;
  Key last;
  int end = 0;  // the place after the last job that was read
  all->Clear();
  while (true) {
    request.set_offset(end == 0 ? 0 : end - 1);
    v1::StatusResponse page;
    if (!ask(request, &page)) return Pages::kNoAnswer;
    const bool has_moved = end > 0 && (page.jobs().empty() || KeyOf(page.jobs(0)) != last);
    if (has_moved && !goes_on) return Pages::kMoved;
    const int before = end;
    end = request.offset() + page.jobs_size();
    const int total = page.jobs_total();
    if (!page.jobs().empty()) last = KeyOf(*page.jobs().rbegin());
    JoinPages(std::move(page), &known, all);
    if (end <= before || end >= total) return Pages::kWhole;
  }
}

}  // namespace

bool FetchJobs(v1::StatusRequest request, const AskStatus& ask, v1::StatusResponse* all) {
  request.set_limit(kJobsOfPage);
  Pages pages = Pages::kMoved;
  for (int i = 1; i <= kMostTries && pages == Pages::kMoved; ++i) {
    pages = ReadPages(request, ask, i == kMostTries, all);
  }
  return pages == Pages::kWhole;
}

}  // namespace rollcall
