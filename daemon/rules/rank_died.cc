// SPDX-License-Identifier: Apache-2.0
#include "daemon/rules/rules.h"

namespace rollcall {

std::optional<Verdict> JudgeDiedRanks(const Suspicion& s) {
  return Blame(s, Cause::kRankDied,
               Pick(s, [](const Absent& a) { return MayHaveDied(a.gone) && !a.disagrees; }));
}

}  // namespace rollcall
