// SPDX-License-Identifier: Apache-2.0
// JudgeKeyNotSet(): ranks wait for a key of a store, and the others neither wait for it nor move.
#include <algorithm>
#include <vector>

#include "daemon/model/progress.h"
#include "daemon/rules/rules.h"

namespace rollcall {
namespace {

// A rank that trains on will set the key when it comes to it.
bool WorksOn(const Suspicion& s, const std::vector<Absent>& absents) {
  const std::vector<int64_t> newest = NewestCallTimes(s.job);
  return std::any_of(absents.begin(), absents.end(), [&](const Absent& absent) {
    const int64_t newest_ns = absent.process < 0 ? 0 : newest[static_cast<size_t>(absent.process)];
    return newest_ns > s.call.since_ns && s.now_ns - newest_ns < s.limits.suspect_after_ns;
  });
}

// Somebody outside of the job may be to set it.
std::optional<Verdict> BlameAll(const Suspicion& s) {
  std::optional<Verdict> verdict = Describe(s, Cause::kMissingRank, s.limits.suspect_after_ns);
  if (!verdict) return verdict;
  verdict->certainty = Certainty::kPossible;
  for (const Waiter& waiter : s.call.waiters) {
    verdict->culprits.push_back(MakeCulprit(s.job, waiter.process, waiter.rank, nullptr));
  }
  return verdict;
}

}  // namespace

std::optional<Verdict> JudgeKeyNotSet(const Suspicion& s) {
  if (s.call.kind != StuckCall::Kind::kStoreKey) return std::nullopt;
  if (s.call.absents.empty()) return BlameAll(s);
  const std::vector<Absent> absents =
      Pick(s, [](const Absent& a) { return a.gone == Gone::kNo && !a.silent; });
  if (WorksOn(s, absents)) return std::nullopt;
  return Blame(s, Cause::kMissingRank, absents);
}

}  // namespace rollcall
