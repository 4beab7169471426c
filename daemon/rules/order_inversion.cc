// SPDX-License-Identifier: Apache-2.0
// JudgeOrderInversion(): two ranks have made calls on two communicators in different orders,
// and each communicator alone is correct. On each rank the first kernel occupies the GPU or
// the stream and waits for its peer on the other rank.
#include <algorithm>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "daemon/rules/order_by_past.h"
#include "daemon/rules/rules.h"
#include "daemon/words/evidence.h"
#include "daemon/words/terms.h"

namespace rollcall {
namespace {

constexpr size_t kMostInverted = 16;

// When each process entered the call, by its own clock.
using Entries = std::map<int32_t, int64_t>;

Entries FindEntries(const StuckCall& call) {
  Entries entries;
  for (const auto& [rank, member] : call.communicator->members) {
    const CallRecord* record = FindCollective(member, call.position);
    if (record != nullptr) entries[member.process] = record->entered_ns;
  }
  return entries;
}

struct Orders {
  std::vector<int32_t> a_first, b_first;  // processes
};

Orders Compare(const Entries& a, const Entries& b) {
  Orders orders;
  for (const auto& [process, a_ns] : a) {
    const auto other = b.find(process);
    if (other == b.end() || other->second == a_ns) continue;
    (a_ns < other->second ? orders.a_first : orders.b_first).push_back(process);
  }
  return orders;
}

WaitEdge MakeOrderEdge(const JobState& job, const StuckCall& call, const std::vector<int32_t>& from,
                       const std::vector<int32_t>& to) {
  WaitEdge edge = MakeEdge(job, call);
  for (const int32_t process : from) edge.from.push_back(PublicRank(job, process, -1));
  for (const int32_t process : to) {
    const int32_t rank = PublicRank(job, process, -1);
    edge.to.push_back({rank, rank});
  }
  return edge;
}

void AddInversionWaiters(const JobState& job, const StuckCall& call, Verdict* verdict) {
  std::set<int32_t> known(verdict->waiting_processes.begin(), verdict->waiting_processes.end());
  for (const Waiter& w : call.waiters) {
    if (!known.insert(w.process).second) continue;
    verdict->waiting_ranks.push_back(PublicRank(job, w.process, w.rank));
    verdict->waiting_processes.push_back(w.process);
  }
}

Verdict MakeInversionVerdict(const JobState& job, const StuckCall& a, const StuckCall& b,
                             const Orders& orders, Verdict verdict) {
  verdict.certainty = std::min(Certainty::kLikely, verdict.certainty);
  AddInversionWaiters(job, b, &verdict);
  for (const auto* side : {&orders.b_first, &orders.a_first}) {
    for (const int32_t process : *side) {
      verdict.culprits.push_back(MakeCulprit(job, process, -1, nullptr));
    }
  }
  const bool b_are_fewer = orders.b_first.size() < orders.a_first.size();
  if (!b_are_fewer) std::reverse(verdict.culprits.begin(), verdict.culprits.end());
  verdict.chain = {MakeOrderEdge(job, a, orders.a_first, orders.b_first),
                   MakeOrderEdge(job, b, orders.b_first, orders.a_first)};
  TellApart(&verdict.chain);
  verdict.evidence.clear();
  for (const WaitEdge& edge : verdict.chain) {
    verdict.evidence.push_back(absl::StrCat(
        RanksInWords(edge.from), " issued ", OpInWords(edge.call.op), " #", edge.position, " on ",
        CommunicatorInWords(edge.communicator, edge.communicator_name, edge.communicator_kind),
        " first"));
  }
  verdict.missing_evidence.push_back(
      "no evidence that the kernels block each other: the GPU can also run calls in different "
      "orders side by side");
  return verdict;
}

bool IsCall(const PastCall& past, const StuckCall& call) {
  return past.communicator == call.communicator && TakesPosition(*past.record) &&
         past.record->position == call.position;
}

// The ranks whose order is not that of their earlier steps are the culprits, if that shows it.
void DecideOrderByPast(const JobState& job, const StuckCall& a, const StuckCall& b,
                       Verdict* verdict) {
  const auto choose = [&](const Past& past, int32_t) {
    JudgedCalls judged;
    size_t found = 0;
    for (size_t i = 0; i < past.calls.size(); ++i) {
      if (!IsCall(past.calls[i], a) && !IsCall(past.calls[i], b)) continue;
      if (found++ == 0) judged.begin = i;
      judged.end = i + 1;
    }
    return found == 2 ? judged : JudgedCalls();
  };
  Pasts pasts({a.communicator, b.communicator});
  KeepDeparted(job, &pasts, choose, verdict);
}

}  // namespace

std::optional<Verdict> JudgeOrderInversion(const JobState& job, const StuckCalls& calls,
                                           int64_t now_ns, const Limits& limits) {
  std::vector<const StuckCall*> stalled;
  for (const StuckCall* call : calls) {
    const bool fits = call->kind == StuckCall::Kind::kCollective && call->absents.empty() &&
                      HoldsUpOtherCalls(call->communicator->kind) && !ReturnsEarly(call->call.op);
    if (fits && stalled.size() < kMostInverted) stalled.push_back(call);
  }
  std::vector<Entries> entries;
  for (const StuckCall* call : stalled) entries.push_back(FindEntries(*call));
  for (size_t i = 0; i < stalled.size(); ++i) {
    for (size_t k = i + 1; k < stalled.size(); ++k) {
      const Orders orders = Compare(entries[i], entries[k]);
      if (orders.a_first.empty() || orders.b_first.empty()) continue;
      const StuckCall& a = *stalled[i];
      const Suspicion s{job, a, {}, now_ns, limits};
      std::optional<Verdict> verdict = Describe(s, Cause::kDeadlock, limits.suspect_after_ns);
      if (!verdict) continue;
      verdict->certainty = CertaintyOfWaits(a.waiters);
      Verdict inversion = MakeInversionVerdict(job, a, *stalled[k], orders, *std::move(verdict));
      DecideOrderByPast(job, a, *stalled[k], &inversion);
      return inversion;
    }
  }
  return std::nullopt;
}

}  // namespace rollcall
