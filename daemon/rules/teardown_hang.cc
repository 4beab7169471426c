// SPDX-License-Identifier: Apache-2.0
#include "absl/strings/str_cat.h"
#include "daemon/rules/rules.h"
#include "daemon/words/terms.h"

namespace rollcall {

std::optional<Verdict> JudgeTeardownHangs(const Suspicion& s) {
  if (s.call.kind != StuckCall::Kind::kTeardown) return std::nullopt;
  if (!s.call.absents.empty()) {
    return Blame(s, Cause::kTeardownHang,
                 Pick(s, [](const Absent& a) { return !MayHaveDied(a.gone) && !a.silent; }));
  }
  std::optional<Verdict> verdict = Describe(s, Cause::kTeardownHang, s.limits.suspect_after_ns);
  if (!verdict) return verdict;
  verdict->certainty = Certainty::kLikely;
  verdict->evidence.push_back(
      absl::StrCat("all expected ranks are inside ", OpInWords(s.call.call.op)));
  verdict->missing_evidence.push_back("no evidence which rank blocks the others");
  return verdict;
}

}  // namespace rollcall
