// SPDX-License-Identifier: Apache-2.0
#include "daemon/diagnosis/rules/rules.h"

namespace rollcall {

std::optional<Verdict> JudgeMissingRanks(const Suspicion& s) {
  if (s.call.kind != StuckCall::Kind::kCollective) return std::nullopt;
  // JudgeLostHosts() judges silent ranks, JudgeBlockedStarts() ranks whose GPU is behind.
  return Blame(s, Cause::kMissingRank, Pick(s, [](const Absent& a) {
                 return a.gone == Gone::kNo && !a.silent && a.lack != Lack::kNotStarted;
               }));
}

}  // namespace rollcall
