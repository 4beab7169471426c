// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
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

// By its stack: messages with tags are not recorded.
bool IsInAMessage(const JobState& job, int32_t process) {
  if (process < 0) return false;
  const std::string& functions = job.processes[static_cast<size_t>(process)].place.functions;
  for (const char* wait : {"ProcessGroupGloo::RecvWork::wait", "ProcessGroupGloo::SendWork::wait",
                           " distributed_c10d.recv ", " distributed_c10d.send "}) {
    if (absl::StrContains(functions, wait)) return true;
  }
  return false;
}

// They wait in messages, with each other or with a rank that is in the call.
bool AreAllInMessages(const Suspicion& s, const std::vector<Absent>& absents) {
  return std::all_of(absents.begin(), absents.end(),
                     [&s](const Absent& absent) { return IsInAMessage(s.job, absent.process); });
}

// Two ends that were both issued, and do not meet, may have other tags: nobody has left out a call.
void WeakenBetweenTags(const Suspicion& s, const std::vector<Absent>& absents, Verdict* verdict) {
  if (s.call.communicator->kind != CommKind::kGloo || !AreAllInMessages(s, absents)) return;
  verdict->certainty = std::min(verdict->certainty, Certainty::kLikely);
  verdict->missing_evidence.push_back(
      "the tags of messages are not recorded: the absent ranks wait in sends and receives, whose "
      "other ends may have other tags");
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
  std::optional<Verdict> verdict = BlameNotHeldUp(s, Cause::kMissingRank, absents);
  if (verdict) WeakenBetweenTags(s, absents, &*verdict);
  return verdict;
}

}  // namespace rollcall
