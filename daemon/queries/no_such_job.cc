// SPDX-License-Identifier: Apache-2.0
#include "daemon/queries/no_such_job.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "service/suggest.h"

namespace rollcall {
namespace {

constexpr size_t kMostNamed = 20;

// The job whose name is nearest to the one asked for; empty if no name is near.
std::string NearestJob(const std::vector<JobId>& jobs, const std::string& asked) {
  std::vector<std::string> names;
  for (const JobId& job : jobs) {
    names.push_back(job.job);
    // Of another tenant than the default one, the list has the name with its tenant.
    const std::string text = ToText(job);
    if (text != job.job) names.push_back(text);
  }
  return Nearest(asked, names);
}

}  // namespace

absl::Status NoSuchJobAmong(const std::vector<JobId>& jobs, size_t total,
                            const std::string& asked) {
  std::vector<std::string> named;
  for (const JobId& job : jobs) {
    if (named.size() < kMostNamed) named.push_back(ToText(job));
  }
  const size_t all = std::max(total, named.size());
  const std::string nearest = NearestJob(jobs, asked);
  return absl::NotFoundError(absl::StrCat(
      "no job \"", asked, "\"; ",
      nearest.empty() ? "" : absl::StrCat("did you mean ", nearest, "? "),
      named.empty() ? "no job reports here" : "jobs here: ", absl::StrJoin(named, ", "),
      all == named.size() ? "" : absl::StrCat(", and ", all - named.size(), " more")));
}

}  // namespace rollcall
