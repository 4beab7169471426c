// SPDX-License-Identifier: Apache-2.0
// JudgeLeftAlone(): one rank waits alone in a collective for all its other members, and these wait
// elsewhere for it, in collectives on several communicators that it has left. That this one rank
// has left out calls explains the cycle; else several ranks would have made a call too many. Where
// they wait on one communicator, the rank may have made its calls in another order: a deadlock.
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/model/progress.h"
#include "daemon/rules/p2p_pairs.h"
#include "daemon/rules/rules.h"
#include "daemon/words/communicator_names.h"
#include "daemon/words/terms.h"

namespace rollcall {
namespace {

// Ranks that wait for the one alone, on as many communicators, and ranks for which it waits. For a
// single one, either of both may have left the other.
constexpr size_t kLeastLeft = 2;

// A collective that lacks this rank only, which is alive and heard of.
bool LacksOnly(const StuckCall& call, int32_t process) {
  if (call.kind != StuckCall::Kind::kCollective || call.absents.size() != 1) return false;
  const Absent& absent = call.absents.front();
  return absent.process == process && absent.ranks == 1 && absent.lack == Lack::kNotEntered &&
         absent.gone == Gone::kNo && !absent.failed && !absent.silent && !absent.stale;
}

// The calls of the cycle in which each process waits.
using CallsOfRanks = std::map<int32_t, std::vector<const StuckCall*>>;

CallsOfRanks FindCallsOfRanks(const StuckCalls& calls, const std::vector<size_t>& cycle) {
  CallsOfRanks waits;
  for (const size_t i : cycle) {
    for (const Waiter& waiter : calls[i]->waiters) waits[waiter.process].push_back(calls[i]);
  }
  return waits;
}

// For several ranks, in every call.
bool WaitsAlone(const std::vector<const StuckCall*>& own) {
  return std::all_of(own.begin(), own.end(), [](const StuckCall* call) {
    return call->kind == StuckCall::Kind::kCollective && call->waiters.size() == 1 &&
           call->absents.size() >= kLeastLeft;
  });
}

struct LeftAlone {
  int32_t process = -1;
  std::vector<const StuckCall*> left;  // the collectives that lack only it, the earliest first
  std::set<int32_t> waiting;           // the processes that wait in these
  std::set<uint64_t> communicators;    // of these

  bool IsEnough() const {
    return waiting.size() >= kLeastLeft && communicators.size() >= kLeastLeft;
  }
};

LeftAlone FindLeftBy(int32_t process, const StuckCalls& calls, const std::vector<size_t>& cycle) {
  LeftAlone alone;
  alone.process = process;
  for (const size_t i : cycle) {
    if (!LacksOnly(*calls[i], process)) continue;
    alone.left.push_back(calls[i]);
    alone.communicators.insert(calls[i]->communicator->id);
    for (const Waiter& waiter : calls[i]->waiters) alone.waiting.insert(waiter.process);
  }
  std::stable_sort(
      alone.left.begin(), alone.left.end(),
      [](const StuckCall* a, const StuckCall* b) { return a->since_ns < b->since_ns; });
  return alone;
}

// None if there is no such rank, or several.
std::optional<LeftAlone> FindLeftAlone(const StuckCalls& calls, const std::vector<size_t>& cycle,
                                       const CallsOfRanks& waits) {
  std::optional<LeftAlone> found;
  for (const auto& [process, own] : waits) {
    if (!WaitsAlone(own)) continue;
    LeftAlone alone = FindLeftBy(process, calls, cycle);
    if (!alone.IsEnough()) continue;
    if (found) return std::nullopt;
    found = std::move(alone);
  }
  return found;
}

}  // namespace

std::optional<Verdict> JudgeLeftAlone(const JobState& job, const StuckCalls& calls,
                                      const std::vector<size_t>& cycle, int64_t now_ns,
                                      const Limits& limits) {
  const CallsOfRanks waits = FindCallsOfRanks(calls, cycle);
  const std::optional<LeftAlone> alone = FindLeftAlone(calls, cycle, waits);
  if (!alone) return std::nullopt;
  const StuckCall& left = *alone->left.front();
  auto verdict = JudgeMissingRanks({job, left, left.absents, now_ns, limits});
  if (!verdict) return verdict;
  verdict->divergence = DivergenceKind::kSkipped;
  verdict->certainty = std::min(verdict->certainty, Certainty::kLikely);
  AddWaitersOf(job, calls, cycle, &*verdict);
  const StuckCall& own = *waits.at(alone->process).front();
  verdict->evidence.push_back(absl::StrCat(
      RanksInWords({PublicRank(job, alone->process, left.absents.front().rank)}),
      " waits alone in ", OpInWords(own.call.op), " #", own.position, " on ",
      CommunicatorInWords(job, *own.communicator), ", and ",
      CountInWords(alone->waiting.size(), "rank waits", "ranks wait"), " for it alone elsewhere"));
  verdict->missing_evidence.push_back(
      "which ranks are wrong: that this one alone has left out a call explains all waits");
  return verdict;
}

}  // namespace rollcall
