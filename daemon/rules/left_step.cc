// SPDX-License-Identifier: Apache-2.0
// JudgeLeftStep(): ranks exchange messages, and one of them has gone on to a call that is in no
// step of its past, while the others have begun one more step, as they always did. It has left the
// loop early.
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "daemon/model/habit.h"
#include "daemon/model/progress.h"
#include "daemon/rules/p2p_pairs.h"
#include "daemon/rules/past_calls.h"
#include "daemon/rules/rules.h"
#include "daemon/words/habits.h"
#include "daemon/words/terms.h"

namespace rollcall {
namespace {

constexpr size_t kMostStepParties = 64;
constexpr size_t kMostStepPairs = 256;

// How a rank's newest call fits its past.
struct StandOfRank {
  Conduct conduct = Conduct::kUnknown;
  Habit habit;
  CallArgs expected, made;
};

// If older calls are lost, and the rest shows no such call, it may be an old custom.
bool StepMayBeOlder(const Past& past, const std::vector<CallToken>& tokens) {
  return !past.is_whole && std::count(tokens.begin(), tokens.end(), tokens.back()) == 1;
}

StandOfRank StandingOf(const Past& past) {
  StandOfRank standing;
  if (past.calls.empty()) return standing;
  for (const bool with_count : {true, false}) {
    const std::vector<CallToken> tokens = TokensOf(past, with_count);
    const Judged judged = JudgeCall(tokens, tokens.size() - 1);
    if (judged.habit.period == 0) continue;
    standing.conduct = judged.conduct;
    standing.habit = judged.habit;
    standing.made = past.calls.back().record->args;
    standing.expected = past.calls[past.calls.size() - 1 - judged.habit.period].record->args;
    if (judged.conduct == Conduct::kBroken && StepMayBeOlder(past, tokens)) {
      standing.conduct = Conduct::kUnknown;
    }
    break;
  }
  return standing;
}

using Standings = std::map<int32_t, StandOfRank>;  // by process

Standings FindStandings(const StuckCalls& calls, const std::vector<size_t>& cycle) {
  std::set<int32_t> parties;
  for (const size_t i : cycle) {
    for (const Waiter& waiter : calls[i]->waiters) parties.insert(waiter.process);
  }
  Standings standings;
  if (parties.size() > kMostStepParties) return standings;
  Pasts pasts(CommunicatorsOf(calls, cycle));
  for (const int32_t process : parties) standings[process] = StandingOf(pasts.Of(process));
  return standings;
}

// The process that alone breaks its habit while most of the others keep theirs, or -1.
int32_t FindLeaver(const Standings& standings) {
  int32_t leaver = -1;
  size_t kept = 0;
  for (const auto& [process, standing] : standings) {
    if (standing.conduct == Conduct::kKept) ++kept;
    if (standing.conduct != Conduct::kBroken) continue;
    if (leaver >= 0) return -1;
    leaver = process;
  }
  return kept >= 2 && 2 * kept > standings.size() - 1 ? leaver : -1;
}

}  // namespace

std::optional<Verdict> JudgeLeftStep(const JobState& job, const StuckCalls& calls,
                                     const std::vector<size_t>& cycle, int64_t now_ns,
                                     const Limits& limits) {
  const std::vector<P2pPair> pairs = FindPairs(calls, cycle, kMostStepPairs);
  if (pairs.empty()) return std::nullopt;
  const Standings standings = FindStandings(calls, cycle);
  const int32_t leaver = FindLeaver(standings);
  const auto pair = std::find_if(pairs.begin(), pairs.end(), [&](const P2pPair& candidate) {
    return candidate.absent.process == leaver;
  });
  if (leaver < 0 || pair == pairs.end()) return std::nullopt;
  const StandOfRank& standing = standings.at(leaver);
  if (OpKind(standing.made.op) == CallKind::kP2p) return std::nullopt;
  auto verdict = JudgeUnmatchedP2p({job, *pair->call, {pair->absent}, now_ns, limits});
  if (!verdict) return verdict;
  verdict->certainty = std::min(verdict->certainty, Certainty::kLikely);
  AddWaitersOf(job, calls, cycle, &*verdict);
  verdict->evidence.push_back(BrokenHabitInWords(
      {PublicRank(job, leaver, pair->absent.rank)}, CallInWords(standing.expected),
      CallInWords(standing.made), standing.habit.period, standing.habit.steps()));
  verdict->missing_evidence.push_back(
      "which ranks are wrong: what each of them has done in its last steps decides");
  return verdict;
}

}  // namespace rollcall
