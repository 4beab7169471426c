// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/model/progress.h"
#include "daemon/rules/blame.h"
#include "daemon/rules/members/heard_hosts.h"
#include "daemon/rules/rules.h"
#include "daemon/words/terms.h"

namespace rollcall {
namespace {

constexpr size_t kFewRanks = 8;  // of whom all stacks are taken

bool HasFreshStack(const Suspicion& s, const Absent& absent) {
  const Process* process = FindProcess(s.job, absent.process);
  return process != nullptr && process->stacks_ns != 0 && process->stacks_ns >= s.call.since_ns;
}

// A rank whose stack shows that it waits for others elsewhere, such as in torch's store. If another
// absent rank does not, that one holds it up. Stacks of before the wait prove nothing.
bool WaitsOutside(const Suspicion& s, const Absent& absent) {
  const Process* process = FindProcess(s.job, absent.process);
  return process != nullptr && process->waits_outside_since_ns != 0 && HasFreshStack(s, absent);
}

// While the stacks of only some of the few absent ranks have come, another one of them may show
// that it waits for these.
void WeakenWithoutStacks(const Suspicion& s, const std::vector<Absent>& absents, Verdict* verdict) {
  if (absents.size() < 2 || absents.size() > kFewRanks) return;
  std::vector<int32_t> unknown;
  for (const Absent& absent : absents) {
    if (HasFreshStack(s, absent)) continue;
    unknown.push_back(PublicRank(s.job, absent.process, absent.rank));
  }
  if (unknown.empty() || unknown.size() == absents.size()) return;
  verdict->certainty = std::min(verdict->certainty, Certainty::kLikely);
  verdict->missing_evidence.push_back(absl::StrCat("where ", RanksInWords(unknown),
                                                   PluralForm(unknown.size(), " stands", " stand"),
                                                   ": it may wait for another absent rank"));
}

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
  const auto held_up = std::stable_partition(absents.begin(), absents.end(),
                                             [&s](const Absent& a) { return !WaitsOutside(s, a); });
  if (held_up == absents.begin() || held_up == absents.end()) {
    std::optional<Verdict> verdict = Blame(s, Cause::kMissingRank, absents);
    if (verdict) WeakenWithoutStacks(s, absents, &*verdict);
    return verdict;
  }
  std::vector<int32_t> ranks;
  for (auto a = held_up; a != absents.end(); ++a) {
    ranks.push_back(PublicRank(s.job, a->process, a->rank));
  }
  absents.erase(held_up, absents.end());
  std::optional<Verdict> verdict = Blame(s, Cause::kMissingRank, absents);
  if (!verdict) return verdict;
  verdict->certainty = std::min(verdict->certainty, Certainty::kLikely);
  verdict->evidence.push_back(
      absl::StrCat("also absent, but waiting for others outside NCCL: ", RanksInWords(ranks)));
  verdict->missing_evidence.push_back(absl::StrCat("for whom ", RanksInWords(ranks),
                                                   PluralForm(ranks.size(), " waits", " wait"),
                                                   " outside NCCL"));
  return verdict;
}

}  // namespace rollcall
