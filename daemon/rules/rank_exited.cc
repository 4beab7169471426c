// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <vector>

#include "daemon/model/progress.h"
#include "daemon/rules/rules.h"

namespace rollcall {
namespace {

bool LostAPeer(const JobState& job, int32_t process) {
  const Process* known = FindProcess(job, process);
  return known != nullptr && rollcall::LostAPeer(*known);
}

// The members that an exception of their own has ended.
std::vector<Absent> FindFailed(const Suspicion& s) {
  std::vector<Absent> failed;
  for (const auto& [rank, member] : s.call.communicator->members) {
    if (!HasFailed(s.job, member) || LostAPeer(s.job, member.process)) continue;
    failed.push_back(MakeAbsent(s.job, rank, member, Lack::kGone));
  }
  return failed;
}

// A rank that an exception ends breaks the calls of its peers, and these end by that.
std::vector<Absent> WithoutVictims(const Suspicion& s, std::vector<Absent> left) {
  const auto is_victim = [&](const Absent& a) { return LostAPeer(s.job, a.process); };
  const auto victims = std::remove_if(left.begin(), left.end(), is_victim);
  if (victims == left.end()) return left;
  if (victims != left.begin()) {
    left.erase(victims, left.end());
    return left;
  }
  std::vector<Absent> failed = FindFailed(s);
  return failed.empty() ? left : failed;
}

// No rank is known that failed before.
void DoubtVictims(const Suspicion& s, Verdict* verdict) {
  const std::vector<Culprit>& culprits = verdict->culprits;
  const bool are_victims = std::all_of(culprits.begin(), culprits.end(), [&](const Culprit& c) {
    return LostAPeer(s.job, c.process);
  });
  if (!are_victims) return;
  verdict->certainty = std::min(verdict->certainty, Certainty::kLikely);
  verdict->missing_evidence.push_back(
      "which rank failed first: these ended because they had lost another one");
}

}  // namespace

std::optional<Verdict> JudgeExitedRanks(const Suspicion& s) {
  // A rank without open calls may leave while others tear down the communicator.
  if (s.call.kind == StuckCall::Kind::kTeardown) return std::nullopt;
  const auto has_left = [](const Absent& a) { return a.gone == Gone::kLeft && !a.disagrees; };
  std::optional<Verdict> verdict =
      Blame(s, Cause::kRankExited, WithoutVictims(s, Pick(s, has_left)));
  if (verdict) DoubtVictims(s, &*verdict);
  return verdict;
}

}  // namespace rollcall
