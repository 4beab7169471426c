// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>
#include <vector>

#include "daemon/rules/blame.h"
#include "daemon/rules/members/heard_hosts.h"
#include "daemon/rules/rules.h"

namespace rollcall {
namespace {

// The silent ranks whose host reports by another agent, if only silent ranks are absent: any other
// one explains the wait better.
std::vector<Absent> UnreportedByNewAgent(const Suspicion& s) {
  const bool all_silent = std::all_of(s.absents.begin(), s.absents.end(), [](const Absent& a) {
    return a.silent && a.gone == Gone::kNo;
  });
  if (!all_silent) return {};
  const HeardHosts heard(s.job);
  return Pick(s, [&](const Absent& a) { return heard.FindAgentOn(a.process) != nullptr; });
}

}  // namespace

std::optional<Verdict> JudgeMissingRanks(const Suspicion& s) {
  if (s.call.kind != StuckCall::Kind::kCollective || s.absents.empty()) return std::nullopt;
  // JudgeLostHosts() judges the ranks of silent hosts, JudgeBlockedStarts() ranks whose GPU is
  // behind.
  std::vector<Absent> absents = Pick(s, [](const Absent& a) {
    return a.gone == Gone::kNo && !a.silent && a.lack != Lack::kNotStarted;
  });
  if (absents.empty()) absents = UnreportedByNewAgent(s);
  return BlameNotHeldUp(s, Cause::kMissingRank, std::move(absents));
}

}  // namespace rollcall
