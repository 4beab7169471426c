// SPDX-License-Identifier: Apache-2.0
// JudgeForkedCreation(): some ranks wait in the creation of a communicator, and the ranks that have
// not joined it wait for them in another call, which may be the creation of another group of
// PyTorch's. The majority is right, unless the numbers of two groups show who has left one out.
#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
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

// PyTorch's number of the group, -1 if it has none.
int32_t NumberOf(const StuckCall& call) {
  int32_t number = -1;
  const bool is_numbered = call.communicator->kind == CommKind::kGloo &&
                           absl::SimpleAtoi(call.communicator->name, &number);
  return is_numbered ? number : -1;
}

enum class Decision : uint8_t { kNone, kMajority, kNumbers };

bool HasOneOf(const Communicator& comm, const Processes& processes) {
  return std::any_of(comm.members.begin(), comm.members.end(), [&](const auto& member) {
    return processes.count(member.second.process) != 0;
  });
}

// PyTorch numbers the groups of a process by its calls of new_group(), and wants each call from all
// ranks. So where two sides make a group of one size under two numbers, the side with the lesser
// number has left out a call, which ended for the members of that group. A rank that is alone on
// its side has rather made one too many.
//
// The side that is behind may be past the creation: it has found in the store what the members of
// the other group of its number had left there, and waits in the first call.
bool NumbersDecide(const Fork& fork) {
  const int32_t inside = NumberOf(*fork.creation), outside = NumberOf(*fork.other);
  if (inside < 0 || outside < 0 || inside == outside) return false;
  if (fork.creation->communicator->size != fork.other->communicator->size) return false;
  if (HasOneOf(*fork.other->communicator, fork.inside)) return false;
  const Processes& ahead = inside > outside ? fork.inside : fork.outside;
  return ahead.size() > 1 || fork.inside.size() == fork.outside.size();
}

// The ranks inside are those that are ahead.
void PutAheadInside(Fork* fork) {
  if (NumberOf(*fork->creation) > NumberOf(*fork->other)) return;
  std::swap(fork->creation, fork->other);
  std::swap(fork->inside, fork->outside);
}

Decision Decide(Fork* fork) {
  if (NumbersDecide(*fork)) {
    PutAheadInside(fork);
    return Decision::kNumbers;
  }
  const bool is_tie = fork->inside.size() == fork->outside.size();
  return is_tie ? Decision::kNone : Decision::kMajority;
}

const char* DecisionInWords(Decision decision) {
  return decision == Decision::kNumbers
             ? "which side is wrong: the ranks wait for each other, and PyTorch, which numbers "
               "groups by the calls of new_group(), wants each call from all ranks"
             : "which side is wrong: the ranks wait for each other, and the majority decides";
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
  std::optional<Fork> fork = FindFork(calls, cycle);
  const Decision decision = fork ? Decide(&*fork) : Decision::kNone;
  if (decision == Decision::kNone) return std::nullopt;
  const bool is_by_number = decision == Decision::kNumbers;
  const bool are_inside_right = is_by_number || fork->inside.size() > fork->outside.size();
  const StuckCall& call = are_inside_right ? *fork->creation : *fork->other;
  Suspicion s{job, call, {}, now_ns, limits};
  for (const Absent& absent : call.absents) {
    const bool is_inside = fork->inside.count(absent.process) != 0;
    if (are_inside_right || is_inside) s.absents.push_back(absent);
  }
  const bool is_creation = are_inside_right && call.kind == StuckCall::Kind::kCreation;
  std::optional<Verdict> verdict = is_creation ? JudgeIncompleteCreation(s) : JudgeMissingRanks(s);
  if (!verdict) return verdict;
  verdict->certainty = std::min(verdict->certainty, Certainty::kLikely);
  // The rank that should make the id has gone on to a call with those that wait for it.
  const bool left_id = are_inside_right && IsStoreWait(call);
  if (left_id || is_by_number) verdict->divergence = DivergenceKind::kSkipped;
  verdict->evidence.push_back(SidesInWords(job, *fork));
  verdict->missing_evidence.push_back(DecisionInWords(decision));
  return verdict;
}

}  // namespace rollcall
