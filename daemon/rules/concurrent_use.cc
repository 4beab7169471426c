// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstddef>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/model/calling_threads.h"
#include "daemon/model/progress.h"
#include "daemon/rules/rules.h"
#include "daemon/words/evidence.h"
#include "daemon/words/terms.h"

namespace rollcall {
namespace {

constexpr size_t kMostWithTwoThreads = 256;  // ranks of a communicator, to look at each

// The ranks of which two threads make calls that nothing orders, without those of `known`. That the
// threads of one rank have met is chance.
std::vector<int32_t> FindOthersWithTwoThreads(const Suspicion& s,
                                              const std::vector<int32_t>& known) {
  const Communicator& comm = *s.call.communicator;
  std::vector<int32_t> others;
  if (comm.members.size() > kMostWithTwoThreads) return others;
  for (const auto& [rank, member] : comm.members) {
    if (std::find(known.begin(), known.end(), rank) != known.end()) continue;
    if (!FindRacingThreads(s.job, member).empty()) others.push_back(rank);
  }
  return others;
}

Culprit MakeUser(const Suspicion& s, int32_t rank) {
  const Member* member = FindMember(*s.call.communicator, rank);
  return MakeCulprit(s.job, member->process, rank, member);
}

// Makes the culprit with the call that it made at the position of the hang.
Culprit MakeCaller(const Suspicion& s, int32_t rank) {
  Culprit culprit = MakeUser(s, rank);
  const CallRecord* record =
      FindCollective(*FindMember(*s.call.communicator, rank), s.call.position);
  culprit.call = record == nullptr ? s.call.call : record->args;
  return culprit;
}

std::vector<int32_t> RanksOf(const std::vector<Culprit>& culprits) {
  std::vector<int32_t> ranks;
  for (const Culprit& culprit : culprits) ranks.push_back(culprit.rank);
  return ranks;
}

}  // namespace

std::optional<Verdict> JudgeConcurrentUse(const Suspicion& s) {
  if (s.call.concurrent.empty()) return std::nullopt;
  std::optional<Verdict> verdict = Describe(s, Cause::kConcurrentUse, s.limits.suspect_after_ns);
  if (!verdict) return verdict;
  // The records prove the overlap, but not that it caused the hang.
  verdict->certainty = Certainty::kLikely;
  for (const int32_t rank : s.call.concurrent) verdict->culprits.push_back(MakeUser(s, rank));
  verdict->evidence.push_back(
      absl::StrCat(RanksInWords(RanksOf(verdict->culprits)),
                   ": two threads were inside calls on the communicator at the same time"));
  std::vector<int32_t> all = FindOthersWithTwoThreads(s, s.call.concurrent);
  if (all.empty()) return verdict;
  all.insert(all.end(), s.call.concurrent.begin(), s.call.concurrent.end());
  std::sort(all.begin(), all.end());
  verdict->culprits.clear();
  for (const int32_t rank : all) verdict->culprits.push_back(MakeCaller(s, rank));
  verdict->unordered_threads = true;
  verdict->evidence.push_back(absl::StrCat(RanksInWords(RanksOf(verdict->culprits)),
                                           ": two threads make calls that nothing orders"));
  return verdict;
}

}  // namespace rollcall
