// SPDX-License-Identifier: Apache-2.0
// JudgeOrderByPast(): ranks wait for each other in collectives on several communicators, and some
// of them make their calls in another order than they always did.
#include "daemon/rules/order_by_past.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/model/habit.h"
#include "daemon/model/progress.h"
#include "daemon/rules/rules.h"
#include "daemon/words/habits.h"
#include "daemon/words/terms.h"

namespace rollcall {
namespace {

constexpr size_t kMostParties = 64;
constexpr size_t kMostOrderedCalls = 32;  // to judge a rank by
constexpr size_t kDescribedRanks = 8;
// Where few steps give no rank a habit, one rank departs from a guess that so many keep in all.
constexpr size_t kLeastParties = 3;

// How a rank's calls fit its past.
struct OrderStanding {
  Conduct conduct = Conduct::kUnknown;
  Habit habit;
  PastCall expected, made;  // kBroken
};

// If older calls are lost, and the rest shows no such call, it may be an old custom.
bool MayBeOlder(const Past& past, const std::vector<CallToken>& tokens, size_t at) {
  const auto end = tokens.begin() + static_cast<std::ptrdiff_t>(at);
  return !past.is_whole && std::find(tokens.begin(), end, tokens[at]) == end;
}

using JudgeByPast = Judged (*)(const std::vector<CallToken>& calls, size_t at);

bool HasFollowedTheCallBefore(const std::vector<CallToken>& calls, size_t at) {
  for (size_t i = 1; i < at; ++i) {
    if (calls[i - 1] == calls[at - 1] && calls[i] == calls[at]) return true;
  }
  return false;
}

// Broken by a call of the step in another place.
Judged GuessCall(const std::vector<CallToken>& calls, size_t at) {
  Judged judged;
  judged.habit = GuessHabit(calls, at);
  if (judged.habit.period == 0) return judged;
  const auto end = calls.begin() + static_cast<std::ptrdiff_t>(at);
  const auto step = end - static_cast<std::ptrdiff_t>(judged.habit.period);
  if (calls[at] == *step) {
    judged.conduct = Conduct::kKept;
  } else if (std::find(step, end, calls[at]) != end && !HasFollowedTheCallBefore(calls, at)) {
    judged.conduct = Conduct::kBroken;
  }
  return judged;
}

// Broken by the first call that breaks the habit; kept if every call keeps it.
OrderStanding JudgeTokens(const Past& past, const std::vector<CallToken>& tokens, JudgedCalls calls,
                          JudgeByPast judge) {
  OrderStanding standing;
  for (size_t at = calls.begin; at < calls.end; ++at) {
    const Judged judged = judge(tokens, at);
    standing.conduct = judged.conduct;
    standing.habit = judged.habit;
    if (judged.conduct == Conduct::kKept) continue;
    if (judged.conduct == Conduct::kUnknown) return standing;
    if (MayBeOlder(past, tokens, at)) standing.conduct = Conduct::kUnknown;
    standing.expected = past.calls[at - judged.habit.period];
    standing.made = past.calls[at];
    return standing;
  }
  return standing;
}

// Where lengths change from step to step, the operations alone may have a habit.
OrderStanding StandingIn(const Past& past, JudgedCalls calls, JudgeByPast judge) {
  const size_t end = std::min(calls.end, past.calls.size());
  if (calls.begin >= end || end - calls.begin > kMostOrderedCalls) return {};
  const OrderStanding standing = JudgeTokens(past, TokensOf(past, true), {calls.begin, end}, judge);
  if (standing.habit.period != 0) return standing;
  return JudgeTokens(past, TokensOf(past, false), {calls.begin, end}, judge);
}

// The call with its communicator, named as in the verdict's chain.
std::string InWords(const Verdict& verdict, const PastCall& call) {
  const uint64_t id = call.communicator->id;
  const auto edge = std::find_if(verdict.chain.begin(), verdict.chain.end(),
                                 [id](const WaitEdge& e) { return e.communicator == id; });
  const std::string name = edge == verdict.chain.end() ? "" : edge->communicator_name;
  return absl::StrCat(CallInWords(call.record->args), " on ",
                      CommunicatorInWords(id, name, call.communicator->kind));
}

using OrderStandings = std::map<int32_t, OrderStanding>;  // by process; kBroken and kKept

// None if some rank's conduct is not known.
std::optional<OrderStandings> FindOrderStandings(Pasts* pasts, const ChooseCalls& choose,
                                                 const std::vector<Culprit>& parties,
                                                 JudgeByPast judge) {
  if (parties.size() > kMostParties) return std::nullopt;
  OrderStandings standings;
  for (const Culprit& party : parties) {
    if (standings.count(party.process) != 0) continue;
    const Past& past = pasts->Of(party.process);
    const OrderStanding standing = StandingIn(past, choose(past, party.process), judge);
    if (standing.conduct == Conduct::kUnknown) return std::nullopt;
    standings.emplace(party.process, standing);
  }
  return standings;
}

std::set<int32_t> FindBroken(const OrderStandings& standings) {
  std::set<int32_t> broken;
  for (const auto& [process, standing] : standings) {
    if (standing.conduct == Conduct::kBroken) broken.insert(process);
  }
  return broken;
}

// By the habits of the ranks; after few steps by a guess, if one rank alone departs from it.
std::optional<OrderStandings> JudgeParties(Pasts* pasts, const ChooseCalls& choose,
                                           const std::vector<Culprit>& parties) {
  std::optional<OrderStandings> standings = FindOrderStandings(pasts, choose, parties, JudgeCall);
  if (standings) return standings;
  standings = FindOrderStandings(pasts, choose, parties, GuessCall);
  const bool is_one_of_many =
      standings && standings->size() >= kLeastParties && FindBroken(*standings).size() == 1;
  return is_one_of_many ? standings : std::nullopt;
}

void DropWaiting(const std::set<int32_t>& processes, Verdict* verdict) {
  size_t kept = 0;
  for (size_t i = 0; i < verdict->waiting_processes.size(); ++i) {
    if (processes.count(verdict->waiting_processes[i]) != 0) continue;
    verdict->waiting_processes[kept] = verdict->waiting_processes[i];
    verdict->waiting_ranks[kept++] = verdict->waiting_ranks[i];
  }
  verdict->waiting_processes.resize(kept);
  verdict->waiting_ranks.resize(kept);
}

void AddOrderPast(const OrderStandings& standings, Verdict* verdict) {
  for (size_t i = 0; i < std::min(verdict->culprits.size(), kDescribedRanks); ++i) {
    const Culprit& culprit = verdict->culprits[i];
    const OrderStanding& standing = standings.at(culprit.process);
    verdict->evidence.push_back(BrokenHabitInWords(
        {culprit.rank}, InWords(*verdict, standing.expected), InWords(*verdict, standing.made),
        standing.habit.period, standing.habit.steps()));
  }
  verdict->missing_evidence.push_back(
      "which ranks are wrong: what each of them has done in its last steps decides");
}

// True if nothing but their order of calls explains why the ranks of the cycle have not made the
// calls.
bool IsSettled(const StuckCall& call) {
  return call.kind == StuckCall::Kind::kCollective &&
         std::all_of(call.absents.begin(), call.absents.end(), [](const Absent& a) {
           const bool may_come = a.lack == Lack::kNotEntered || a.lack == Lack::kNotStarted;
           return may_come && a.gone == Gone::kNo && !a.failed && !a.silent && !a.stale;
         });
}

// The calls of a past from the one after the last call before the owed one to the owed one, or to
// the newest if the rank has not made it. They show in which order the rank came to it. Of the way
// to the first call of all on a communicator only the newest call is known.
JudgedCalls CallsTowards(const Past& past, const StuckCall& owed) {
  if (owed.position == 0 && !past.calls.empty()) {
    return {past.calls.size() - 1, past.calls.size()};
  }
  JudgedCalls judged;
  bool is_known = false;
  for (size_t i = 0; i < past.calls.size(); ++i) {
    const CallRecord& record = *past.calls[i].record;
    if (past.calls[i].communicator != owed.communicator || !TakesPosition(record)) continue;
    if (record.position + 1 == owed.position) {
      is_known = true;
      judged = {i + 1, past.calls.size()};
    }
    if (is_known && record.position == owed.position) judged.end = i + 1;
  }
  return judged;
}

using Owed = std::map<int32_t, std::vector<const StuckCall*>>;  // by process

Owed FindOwed(const StuckCalls& calls, const std::vector<size_t>& cycle) {
  Owed owed;
  for (const size_t i : cycle) {
    for (const Absent& absent : calls[i]->absents) owed[absent.process].push_back(calls[i]);
  }
  return owed;
}

// None if the way to one of the owed calls is not known.
JudgedCalls CallsTowardsAll(const Past& past, const std::vector<const StuckCall*>& owed) {
  JudgedCalls all = {SIZE_MAX, 0};
  for (const StuckCall* call : owed) {
    const JudgedCalls judged = CallsTowards(past, *call);
    if (judged.begin >= judged.end) return {};
    all = {std::min(all.begin, judged.begin), std::max(all.end, judged.end)};
  }
  return all;
}

}  // namespace

bool KeepDeparted(const JobState& job, Pasts* pasts, const ChooseCalls& choose, Verdict* verdict) {
  const std::vector<Culprit>& parties = verdict->culprits;
  const bool are_heard = std::all_of(parties.begin(), parties.end(), [&](const Culprit& party) {
    return FindProcess(job, party.process) != nullptr && IsHeard(job, party.process);
  });
  if (!are_heard) return false;
  const std::optional<OrderStandings> standings = JudgeParties(pasts, choose, parties);
  if (!standings) return false;
  const std::set<int32_t> broken = FindBroken(*standings);
  if (broken.empty() || broken.size() == standings->size()) return false;
  verdict->culprits.erase(
      std::remove_if(verdict->culprits.begin(), verdict->culprits.end(),
                     [&](const Culprit& c) { return broken.count(c.process) == 0; }),
      verdict->culprits.end());
  DropWaiting(broken, verdict);
  verdict->certainty = std::min(verdict->certainty, Certainty::kLikely);
  verdict->divergence = DivergenceKind::kSwapped;
  AddOrderPast(*standings, verdict);
  return true;
}

std::optional<Verdict> JudgeOrderByPast(const JobState& job, const StuckCalls& calls,
                                        const std::vector<size_t>& cycle, int64_t now_ns,
                                        const Limits& limits) {
  const bool is_settled =
      std::all_of(cycle.begin(), cycle.end(), [&](size_t i) { return IsSettled(*calls[i]); });
  if (!is_settled) return std::nullopt;
  std::optional<Verdict> verdict = JudgeDeadlock(job, calls, cycle, now_ns, limits);
  if (!verdict) return verdict;
  const Owed owed = FindOwed(calls, cycle);
  const auto choose = [&](const Past& past, int32_t process) {
    const auto found = owed.find(process);
    return found == owed.end() ? JudgedCalls() : CallsTowardsAll(past, found->second);
  };
  Pasts pasts(CommunicatorsOf(calls, cycle));
  return KeepDeparted(job, &pasts, choose, &*verdict) ? verdict : std::nullopt;
}

}  // namespace rollcall
