// SPDX-License-Identifier: Apache-2.0
#include "daemon/rules/rules.h"

namespace rollcall {

std::optional<Verdict> JudgeExitedRanks(const Suspicion& s) {
  // A rank without open calls may leave while others tear down the communicator.
  if (s.call.kind == StuckCall::Kind::kTeardown) return std::nullopt;
  return Blame(s, Cause::kRankExited,
               Pick(s, [](const Absent& a) { return a.gone == Gone::kLeft && !a.disagrees; }));
}

}  // namespace rollcall
