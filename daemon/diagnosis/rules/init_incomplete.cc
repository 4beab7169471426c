// SPDX-License-Identifier: Apache-2.0
#include "daemon/diagnosis/rules/rules.h"

namespace rollcall {

std::optional<Verdict> JudgeIncompleteCreation(const Suspicion& s) {
  if (s.call.kind != StuckCall::Kind::kCreation) return std::nullopt;
  return Blame(s, Cause::kInitIncomplete,
               Pick(s, [](const Absent& a) { return a.gone == Gone::kNo && !a.silent; }));
}

}  // namespace rollcall
