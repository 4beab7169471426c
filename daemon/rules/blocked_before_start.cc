// SPDX-License-Identifier: Apache-2.0
#include "daemon/rules/rules.h"

namespace rollcall {

std::optional<Verdict> JudgeBlockedStarts(const Suspicion& s) {
  return Blame(s, Cause::kBlockedBeforeStart,
               Pick(s, [](const Absent& a) { return a.lack == Lack::kNotStarted; }));
}

}  // namespace rollcall
