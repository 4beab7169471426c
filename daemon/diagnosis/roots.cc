// SPDX-License-Identifier: Apache-2.0
#include "daemon/diagnosis/roots.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/durations.h"
#include "daemon/model/progress.h"
#include "daemon/rules/freshness.h"
#include "daemon/rules/rules.h"
#include "daemon/rules/thread_race.h"
#include "daemon/rules/wait_graph.h"
#include "daemon/words/terms.h"

namespace rollcall {
namespace {

// A hang of a large job blocks thousands of calls: this limits the verdicts.
constexpr size_t kMostRoots = 64;
constexpr size_t kMostConsequences = 16;
constexpr size_t kMostChain = 16;
constexpr size_t kMostByPast = 8;  // calls and cycles

WaitEdge MakeChainEdge(const JobState& job, const StuckCall& call) {
  WaitEdge edge = MakeEdge(job, call);
  for (const Waiter& w : call.waiters) edge.from.push_back(PublicRank(job, w.process, w.rank));
  for (const Absent& a : call.absents) {
    const int32_t rank = PublicRank(job, a.process, a.rank);
    edge.to.push_back({rank, rank + (a.ranks - 1)});
  }
  return edge;
}

void AddExcused(const JobState& job, const StuckCall& call, const WaitNode& node,
                Verdict* verdict) {
  if (node.excused.empty()) return;
  std::vector<int32_t> ranks;
  for (const int32_t rank : node.excused) {
    const Member* member = FindMember(*call.communicator, rank);
    ranks.push_back(PublicRank(job, member == nullptr ? -1 : member->process, rank));
  }
  verdict->evidence.push_back(
      absl::StrCat("also absent, but blocked in another call: ", RanksInWords(ranks)));
}

std::vector<Verdict> Judge(const Suspicion& suspicion) {
  std::vector<Verdict> verdicts;
  for (const CallRule rule : CallRules()) {
    std::optional<Verdict> verdict = rule(suspicion);
    if (verdict) verdicts.push_back(*std::move(verdict));
  }
  return verdicts;
}

// The calls at which paths through the wait graph end.
class Roots {
 public:
  Roots(const JobState& job, const StuckCalls& calls, const WaitGraph& graph, int64_t now_ns,
        const Limits& limits)
      : job_(job), calls_(calls), graph_(graph), now_ns_(now_ns), limits_(limits) {}

  std::vector<Verdict> Find() {
    std::vector<Verdict> verdicts;
    for (const size_t i : InOrder()) {
      const WaitNode& node = graph_.nodes[i];
      const bool ends_here =
          !node.guilty.empty() || (calls_[i]->absents.empty() && node.held_up_by.empty());
      if (!ends_here || verdicts.size() >= kMostRoots) continue;
      std::vector<Verdict> found =
          Judge({job_, *calls_[i], Blamable(node.guilty), now_ns_, limits_});
      AskPast(i, &found);
      for (Verdict& v : found) {
        AddExcused(job_, *calls_[i], node, &v);
        verdicts.push_back(std::move(v));
      }
    }
    for (const size_t cycle : CyclesInOrder()) AddCycle(graph_.components[cycle], &verdicts);
    auto inversion = JudgeOrderInversion(job_, calls_, now_ns_, limits_);
    if (inversion) verdicts.push_back(*std::move(inversion));
    return verdicts;
  }

  // The consequences of the roots, with the chain of waits. Only if there is a root.
  std::vector<Verdict> FindConsequences() {
    std::vector<Verdict> verdicts;
    for (const size_t i : InOrder()) {
      const WaitNode& node = graph_.nodes[i];
      if (!node.guilty.empty() || node.held_up_by.empty() || InCycle(i)) continue;
      if (calls_[i]->absents.empty()) continue;
      std::vector<Verdict> found =
          Judge({job_, *calls_[i], Blamable(calls_[i]->absents), now_ns_, limits_});
      if (found.empty()) continue;
      Verdict& v = found.front();
      v.is_consequence = true;
      for (const size_t step : PathToRoot(graph_, i)) {
        if (v.chain.size() < kMostChain) v.chain.push_back(MakeChainEdge(job_, *calls_[step]));
      }
      verdicts.push_back(std::move(v));
      if (verdicts.size() == kMostConsequences) break;
    }
    return verdicts;
  }

 private:
  std::vector<size_t> InOrder() const {
    std::vector<size_t> order(calls_.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return calls_[a]->since_ns < calls_[b]->since_ns; });
    return order;
  }

  // Returns the earliest cycles, at most kMostRoots.
  std::vector<size_t> CyclesInOrder() const {
    const auto since = [&](size_t cycle) {
      int64_t first = INT64_MAX;
      for (const size_t i : graph_.components[cycle]) {
        first = std::min(first, calls_[i]->since_ns);
      }
      return first;
    };
    std::vector<std::pair<int64_t, size_t>> order;
    for (const size_t cycle : graph_.cycles) order.emplace_back(since(cycle), cycle);
    std::sort(order.begin(), order.end());
    if (order.size() > kMostRoots) order.resize(kMostRoots);
    std::vector<size_t> cycles;
    for (const auto& [since_ns, cycle] : order) cycles.push_back(cycle);
    return cycles;
  }

  bool InCycle(size_t call) const {
    // BuildWaitGraph() adds the cycles in order.
    return std::binary_search(graph_.cycles.begin(), graph_.cycles.end(),
                              graph_.nodes[call].component);
  }

  // Where a send or receive without its other end is all that is wrong with a call, the ranks' own
  // pasts may show which end is wrong.
  void AskPast(size_t call, std::vector<Verdict>* found) {
    if (found->size() != 1 || found->front().cause != Cause::kUnmatchedP2p) return;
    if (!MayAskPast()) return;
    auto verdict = JudgeP2pByPast(job_, calls_, call, now_ns_, limits_);
    if (verdict) found->front() = *std::move(verdict);
  }

  bool MayAskPast() { return asked_past_++ < kMostByPast; }

  void AddCycle(const std::vector<size_t>& cycle, std::vector<Verdict>* verdicts) {
    // A rank in the cycle has an NCCL error or used NCCL wrongly: the verdict is on that call.
    for (const size_t i : cycle) {
      for (const CallRule rule : {JudgeConcurrentUse, JudgeNcclErrors}) {
        auto verdict = rule({job_, *calls_[i], {}, now_ns_, limits_});
        if (verdict) verdicts->push_back(*std::move(verdict));
      }
    }
    struct CycleRule {
      decltype(&JudgeDeadlock) judge;
      bool asks_past;
    };
    static constexpr CycleRule kRules[] = {
        {JudgeCycleByPast, true},     {JudgeLackingBatch, true}, {JudgeLeftStep, true},
        {JudgeCycleByMajority, true}, {JudgeOrderByPast, true},  {JudgeForkedCreation, false},
        {JudgeLeftCollective, true},  {JudgeLeftLibrary, false}, {JudgeLeftAlone, false},
        {JudgeUnmatchedTie, false},   {JudgeDeadlock, false},
    };
    const bool may_ask = MayAskPast();
    for (const CycleRule& rule : kRules) {
      if (rule.asks_past && !may_ask) continue;
      auto verdict = rule.judge(job_, calls_, cycle, now_ns_, limits_);
      if (!verdict) continue;
      verdicts->push_back(*std::move(verdict));
      return;
    }
  }

  const JobState& job_;
  const StuckCalls& calls_;
  const WaitGraph& graph_;
  const int64_t now_ns_;
  const Limits& limits_;
  size_t asked_past_ = 0;  // calls and cycles
};

}  // namespace

std::vector<Verdict> JudgeCalls(const JobState& job, const StuckCalls& calls, int64_t now_ns,
                                const Limits& limits, std::vector<Verdict>* consequences) {
  WaitGraphOptions options;
  options.now_ns = now_ns;
  options.settled_after_ns = std::min(kSecond, limits.suspect_after_ns / 4);
  const WaitGraph graph = BuildWaitGraph(calls, options);
  Roots roots(job, calls, graph, now_ns, limits);
  std::vector<Verdict> verdicts = roots.Find();
  WeighUnorderedCalls(job, calls, &verdicts);
  *consequences = roots.FindConsequences();
  return verdicts;
}

}  // namespace rollcall
