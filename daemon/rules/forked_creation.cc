// SPDX-License-Identifier: Apache-2.0
// JudgeForkedCreation(): some ranks wait in the creation of a communicator, and the ranks that have
// not joined it wait for them in another call, which may be the creation of another group of
// PyTorch's. The majority is right.
#include <algorithm>
#include <map>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/rules/rules.h"
#include "daemon/rules/store_waits.h"
#include "daemon/words/communicator_names.h"
#include "daemon/words/terms.h"

namespace rollcall {
namespace {

using Processes = std::map<int32_t, int32_t>;  // process -> rank in the new communicator

// The ranks on both sides of the creation.
struct Fork {
  const StuckCall* creation = nullptr;
  const StuckCall* other = nullptr;  // the call in which most of the absent ranks wait
  Processes inside, outside;
};

size_t CountIn(const std::vector<Waiter>& waiters, const Processes& processes) {
  return static_cast<size_t>(
      std::count_if(waiters.begin(), waiters.end(),
                    [&](const Waiter& waiter) { return processes.count(waiter.process) != 0; }));
}

// PyTorch's groups of gloo have the number that a process has counted, and so do teams of UCC. So
// two of them that wait for each other are not a matter of order: one side has made a group that
// the other one has not made.
bool IsCounted(const StuckCall& call) { return HasCountedIds(call.communicator->kind); }

// The one creation of the cycle, or of counted ones the one with most ranks. nullptr if there is
// none, or several.
const StuckCall* FindCreation(const StuckCalls& calls, const std::vector<size_t>& cycle) {
  const StuckCall* found = nullptr;
  for (const size_t i : cycle) {
    const StuckCall& call = *calls[i];
    if (call.kind != StuckCall::Kind::kCreation) continue;
    if (found != nullptr && !(IsCounted(*found) && IsCounted(call))) return nullptr;
    if (found == nullptr || call.waiters.size() > found->waiters.size()) found = &call;
  }
  return found;
}

std::optional<Fork> FindFork(const StuckCalls& calls, const std::vector<size_t>& cycle) {
  Fork fork;
  fork.creation = FindCreation(calls, cycle);
  if (fork.creation == nullptr) return std::nullopt;
  for (const Waiter& waiter : fork.creation->waiters) {
    fork.inside.emplace(waiter.process, waiter.rank);
  }
  for (const Absent& absent : fork.creation->absents) {
    if (absent.ranks != 1 || absent.gone != Gone::kNo || absent.silent || absent.stale) {
      return std::nullopt;
    }
    fork.outside.emplace(absent.process, absent.rank);
  }
  size_t most = 0;
  for (const size_t i : cycle) {
    const size_t waiting = CountIn(calls[i]->waiters, fork.outside);
    if (calls[i] == fork.creation || waiting <= most) continue;
    most = waiting;
    fork.other = calls[i];
  }
  return fork.other == nullptr ? std::nullopt : std::make_optional(fork);
}

std::string SidesInWords(const JobState& job, const Fork& fork) {
  const auto name = [&](const StuckCall& call, const Processes& processes) {
    std::vector<int32_t> ranks;
    for (const Waiter& waiter : call.waiters) {
      if (processes.count(waiter.process) == 0) continue;
      ranks.push_back(PublicRank(job, waiter.process, waiter.rank));
    }
    return absl::StrCat(RanksInWords(ranks), PluralForm(ranks.size(), " waits", " wait"), " in ");
  };
  const auto where = [&](const StuckCall& call) {
    return absl::StrCat(OpInWords(call.call.op), " of ",
                        CommunicatorInWords(job, *call.communicator));
  };
  return absl::StrCat(name(*fork.creation, fork.inside), where(*fork.creation), ", ",
                      name(*fork.other, fork.outside), where(*fork.other));
}

}  // namespace

std::optional<Verdict> JudgeForkedCreation(const JobState& job, const StuckCalls& calls,
                                           const std::vector<size_t>& cycle, int64_t now_ns,
                                           const Limits& limits) {
  const std::optional<Fork> fork = FindFork(calls, cycle);
  if (!fork || fork->inside.size() == fork->outside.size()) return std::nullopt;
  const bool most_create = fork->inside.size() > fork->outside.size();
  const StuckCall& call = most_create ? *fork->creation : *fork->other;
  Suspicion s{job, call, {}, now_ns, limits};
  for (const Absent& absent : call.absents) {
    const bool is_inside = fork->inside.count(absent.process) != 0;
    if (most_create || is_inside) s.absents.push_back(absent);
  }
  std::optional<Verdict> verdict = most_create ? JudgeIncompleteCreation(s) : JudgeMissingRanks(s);
  if (!verdict) return verdict;
  verdict->certainty = std::min(verdict->certainty, Certainty::kLikely);
  // The rank that should make the id has gone on to a call with those that wait for it.
  if (most_create && IsStoreWait(call)) verdict->divergence = DivergenceKind::kSkipped;
  verdict->evidence.push_back(SidesInWords(job, *fork));
  verdict->missing_evidence.push_back(
      "which side is wrong: the ranks wait for each other, and the majority decides");
  return verdict;
}

}  // namespace rollcall
