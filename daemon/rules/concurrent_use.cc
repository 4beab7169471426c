// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "daemon/rules/rules.h"
#include "daemon/words/evidence.h"
#include "daemon/words/terms.h"

namespace rollcall {

std::optional<Verdict> JudgeConcurrentUse(const Suspicion& s) {
  if (s.call.concurrent.empty()) return std::nullopt;
  std::optional<Verdict> verdict = Describe(s, Cause::kConcurrentUse, s.limits.suspect_after_ns);
  if (!verdict) return verdict;
  // The records prove the overlap, but not that it caused the hang.
  verdict->certainty = Certainty::kLikely;
  std::vector<int32_t> ranks;
  for (const int32_t rank : s.call.concurrent) {
    const Member* member = FindMember(*s.call.communicator, rank);
    verdict->culprits.push_back(MakeCulprit(s.job, member->process, rank, member));
    ranks.push_back(verdict->culprits.back().rank);
  }
  verdict->evidence.push_back(absl::StrCat(
      RanksInWords(ranks), ": two threads were inside calls on the communicator at the same time"));
  return verdict;
}

}  // namespace rollcall
