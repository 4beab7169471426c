// SPDX-License-Identifier: Apache-2.0
// JudgeLeftLibrary(): most ranks wait in a collective of one library, and those that have not
// entered it wait for them in a collective of another library (NCCL, gloo), or for a key of a
// store. Nothing orders the calls of two libraries but the program. That the fewest ranks have left
// out a collective explains the cycle best.
#include <algorithm>
#include <optional>
#include <unordered_map>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/model/progress.h"
#include "daemon/rules/p2p_pairs.h"
#include "daemon/rules/rules.h"
#include "daemon/words/communicator_names.h"
#include "daemon/words/terms.h"

namespace rollcall {
namespace {

bool IsOrderedByProgram(const StuckCall& call) {
  return call.kind == StuckCall::Kind::kCollective || call.kind == StuckCall::Kind::kStoreKey;
}

bool HasSeveralKinds(const StuckCalls& calls, const std::vector<size_t>& cycle) {
  return std::any_of(cycle.begin(), cycle.end(), [&](size_t i) {
    return calls[i]->communicator->kind != calls[cycle.front()]->communicator->kind;
  });
}

// The calls of a cycle that each process waits in.
using Waits = std::unordered_multimap<int32_t, const StuckCall*>;

Waits FindWaits(const StuckCalls& calls, const std::vector<size_t>& cycle) {
  Waits waits;
  for (const size_t i : cycle) {
    if (!IsOrderedByProgram(*calls[i])) continue;
    for (const Waiter& waiter : calls[i]->waiters) waits.emplace(waiter.process, calls[i]);
  }
  return waits;
}

// The call of another library in which the absent rank waits, or nullptr.
const StuckCall* FindElsewhere(const Waits& waits, const StuckCall& left, int32_t process) {
  const auto [begin, end] = waits.equal_range(process);
  for (auto at = begin; at != end; ++at) {
    if (at->second->communicator->kind != left.communicator->kind) return at->second;
  }
  return nullptr;
}

// The collective of the cycle that the fewest ranks have left, for one of another library; nullptr
// if there is none, or several are left by as few.
const StuckCall* FindLeftCall(const StuckCalls& calls, const std::vector<size_t>& cycle,
                              const Waits& waits) {
  const StuckCall* found = nullptr;
  bool is_only = false;
  for (const size_t i : cycle) {
    const StuckCall& call = *calls[i];
    if (call.kind != StuckCall::Kind::kCollective || call.absents.empty()) continue;
    const bool fits =
        std::all_of(call.absents.begin(), call.absents.end(), [&](const Absent& absent) {
          return FindElsewhere(waits, call, absent.process) != nullptr;
        });
    if (!fits || (found != nullptr && call.absents.size() > found->absents.size())) continue;
    is_only = found == nullptr || call.absents.size() < found->absents.size();
    found = &call;
  }
  return is_only && IsLeftByFew(*found) ? found : nullptr;
}

std::string StandsInWords(const JobState& job, const StuckCall& call) {
  const std::string where = CommunicatorInWords(job, *call.communicator);
  if (call.kind == StuckCall::Kind::kStoreKey) return absl::StrCat("for ", where, ", and so");
  return absl::StrCat("in ", OpInWords(call.call.op), " #", call.position, " on ", where);
}

}  // namespace

std::optional<Verdict> JudgeLeftLibrary(const JobState& job, const StuckCalls& calls,
                                        const std::vector<size_t>& cycle, int64_t now_ns,
                                        const Limits& limits) {
  if (!HasSeveralKinds(calls, cycle)) return std::nullopt;
  const Waits waits = FindWaits(calls, cycle);
  const StuckCall* left = FindLeftCall(calls, cycle, waits);
  if (left == nullptr) return std::nullopt;
  auto verdict = JudgeMissingRanks({job, *left, left->absents, now_ns, limits});
  if (!verdict) return verdict;
  verdict->divergence = DivergenceKind::kSkipped;
  verdict->certainty = std::min(verdict->certainty, Certainty::kLikely);
  const Absent& first = left->absents.front();
  const StuckCall& elsewhere = *FindElsewhere(waits, *left, first.process);
  verdict->evidence.push_back(
      absl::StrCat(RanksInWords({PublicRank(job, first.process, first.rank)}), " waits ",
                   StandsInWords(job, elsewhere), " for ranks that wait here"));
  verdict->missing_evidence.push_back(
      "which side has left out a call: the fewest ranks have left this one");
  return verdict;
}

}  // namespace rollcall
