#include "daemon/diagnosis/rules/rules.h"

namespace rollcall {

std::optional<Verdict> JudgeExitedRanks(const Suspicion& s) {
  // Who has nothing left to do may leave: in a teardown that is the point.
  if (s.call.kind == StuckCall::Kind::kTeardown) return std::nullopt;
  return Blame(s, Cause::kRankExited,
               Pick(s, [](const Absent& a) { return a.gone == Gone::kLeft; }));
}

}  // namespace rollcall
