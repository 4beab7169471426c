// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "daemon/rules/rules.h"
#include "daemon/words/evidence.h"
#include "daemon/words/terms.h"

namespace rollcall {
namespace {

void AddEnd(const Suspicion& s, int32_t rank, const CallArgs& call, Verdict* verdict) {
  const Member* member = FindMember(*s.call.communicator, rank);
  if (member == nullptr) return;
  Culprit culprit = MakeCulprit(s.job, member->process, rank, member);
  culprit.call = call;
  verdict->evidence.push_back(absl::StrCat(RanksInWords({culprit.rank}), ": ", CallInWords(call)));
  verdict->culprits.push_back(std::move(culprit));
}

// The verdict on ends with different sizes: there is no majority, so either may be wrong. Both ends
// are known, so the wait cannot end and need not become long. A pair that is guessed may be wrong,
// and its wait must be as long as any other.
std::optional<Verdict> JudgeSizes(const Suspicion& s) {
  const bool is_guessed = s.call.is_pair_guessed;
  std::optional<Verdict> verdict =
      Describe(s, Cause::kUnmatchedP2p,
               is_guessed ? SuspectAfter(*s.call.communicator, s.call.call, s.limits)
                          : std::min(kCompareSizesAfterNs, s.limits.suspect_after_ns));
  if (!verdict) return verdict;
  verdict->at_once = !is_guessed;
  verdict->certainty = std::min(Certainty::kLikely, CertaintyOfWaits(s.call.waiters));
  verdict->mismatched_fields = {"count"};
  AddEnd(s, s.call.waiters.front().rank, s.call.call, &*verdict);
  AddEnd(s, s.call.other_rank, s.call.other_end, &*verdict);
  verdict->missing_evidence.push_back("neither end has a majority: either may be wrong");
  return verdict;
}

}  // namespace

std::optional<Verdict> JudgeUnmatchedP2p(const Suspicion& s) {
  if (s.call.kind != StuckCall::Kind::kP2p) return std::nullopt;
  if (s.call.absents.empty()) return s.call.size_differs ? JudgeSizes(s) : std::nullopt;
  std::optional<Verdict> verdict =
      Blame(s, Cause::kUnmatchedP2p, Pick(s, [](const Absent& a) {
              return a.gone == Gone::kNo && !a.silent && a.lack != Lack::kNotStarted;
            }));
  if (!verdict) return verdict;
  if (s.call.tags_differ) verdict->mismatched_fields = {"tag"};
  for (const Waiter& w : s.call.waiters) {
    if (verdict->evidence.size() > 8) break;
    verdict->evidence.push_back(absl::StrCat(RanksInWords({PublicRank(s.job, w.process, w.rank)}),
                                             ": waits in ", OpInWords(s.call.call.op),
                                             ", without a ", OtherEndInWords(s.call.call.op),
                                             " that matches"));
    break;
  }
  return verdict;
}

}  // namespace rollcall
