// SPDX-License-Identifier: Apache-2.0
#include "daemon/diagnosis/diagnose.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "daemon/diagnosis/advice.h"
#include "daemon/diagnosis/call_sites.h"
#include "daemon/diagnosis/explain.h"
#include "daemon/diagnosis/gpu_sharing.h"
#include "daemon/diagnosis/graphs.h"
#include "daemon/diagnosis/losses.h"
#include "daemon/diagnosis/rules/divergence.h"
#include "daemon/diagnosis/rules/freshness.h"
#include "daemon/diagnosis/rules/rules.h"
#include "daemon/diagnosis/rules/wait_graph.h"
#include "daemon/diagnosis/steps.h"
#include "daemon/words/sentences.h"
#include "daemon/words/terms.h"
#include "proto/durations.h"

namespace rollcall {
namespace {

// A hang of a large job blocks thousands of calls: this limits the verdicts.
constexpr size_t kMostRoots = 64;
constexpr size_t kMostConsequences = 16;
constexpr size_t kMostChain = 16;

bool MayWait(const Communicator& comm) { return comm.version == 0 || comm.may_wait != 0; }

int64_t WaitingSince(const Communicator& comm) {
  int64_t since = 0;
  if (!MayWait(comm)) return since;
  for (const auto& [rank, member] : comm.members) {
    const int64_t candidate = WaitsSince(member);
    if (candidate != 0 && (since == 0 || candidate < since)) since = candidate;
  }
  return since;
}

bool IsForming(const std::vector<StuckCall>& calls) {
  return std::any_of(calls.begin(), calls.end(),
                     [](const StuckCall& call) { return call.kind == StuckCall::Kind::kCreation; });
}

// The shortest wait that any rule considers.
int64_t ShortestLimit(const Limits& limits) {
  return std::min({limits.suspect_after_ns, limits.suspect_floor_ns, limits.absent_for_good_ns});
}

WaitEdge EdgeOf(const JobState& job, const StuckCall& call) {
  WaitEdge edge = EdgeIn(call);
  for (const Waiter& w : call.waiters) edge.from.push_back(PublicRank(job, w.process, w.rank));
  for (const Absent& a : call.absents) edge.to.push_back(PublicRank(job, a.process, a.rank));
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

// The calls at which ways through the graph end.
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
      for (Verdict& v : Judge({job_, *calls_[i], Blamable(node.guilty), now_ns_, limits_})) {
        AddExcused(job_, *calls_[i], node, &v);
        verdicts.push_back(std::move(v));
      }
    }
    for (const size_t cycle : graph_.cycles) AddCycle(graph_.components[cycle], &verdicts);
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
      for (const size_t step : WayToRoot(graph_, i)) {
        if (v.chain.size() < kMostChain) v.chain.push_back(EdgeOf(job_, *calls_[step]));
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

  bool InCycle(size_t call) const {
    return std::find(graph_.cycles.begin(), graph_.cycles.end(), graph_.nodes[call].component) !=
           graph_.cycles.end();
  }

  void AddCycle(const std::vector<size_t>& cycle, std::vector<Verdict>* verdicts) const {
    // A rank in the cycle broke NCCL or its rules: the verdict is on that call.
    for (const size_t i : cycle) {
      for (const CallRule rule : {JudgeConcurrentUse, JudgeNcclErrors}) {
        auto verdict = rule({job_, *calls_[i], {}, now_ns_, limits_});
        if (verdict) verdicts->push_back(*std::move(verdict));
      }
    }
    auto deadlock = JudgeDeadlock(job_, calls_, cycle, now_ns_, limits_);
    if (deadlock) verdicts->push_back(*std::move(deadlock));
  }

  const JobState& job_;
  const StuckCalls& calls_;
  const WaitGraph& graph_;
  const int64_t now_ns_;
  const Limits& limits_;
};

std::vector<Verdict> JudgeCalls(const JobState& job, const StuckCalls& calls, int64_t now_ns,
                                const Limits& limits, std::vector<Verdict>* consequences) {
  WaitGraphOptions options;
  options.now_ns = now_ns;
  options.settled_after_ns = std::min(kSecond, limits.suspect_after_ns / 4);
  const WaitGraph graph = BuildWaitGraph(calls, options);
  Roots roots(job, calls, graph, now_ns, limits);
  std::vector<Verdict> verdicts = roots.Find();
  *consequences = roots.FindConsequences();
  return verdicts;
}

}  // namespace

std::vector<Verdict> Diagnoser::Run(const JobState& job, int64_t now_ns, const Limits& limits) {
  const Glance glance = Look(job, now_ns, limits);
  std::vector<Verdict> verdicts, consequences;
  if (glance.anybody_long) {
    verdicts = JudgeCalls(job, Collect(job), now_ns, limits, &consequences);
  }
  for (const auto& [id, finding] : findings_) {
    for (Verdict verdict : finding.mismatches) {
      if (verdict.since_ns != 0)
        verdict.waited_ns = std::max<int64_t>(0, now_ns - verdict.since_ns);
      verdicts.push_back(std::move(verdict));
    }
  }
  if (std::optional<Verdict> start = JudgeStart(job, now_ns, limits)) {
    verdicts.push_back(*std::move(start));
  }
  const bool hangs = !verdicts.empty();
  if (!hangs) {
    for (const Communicator* comm : glance.straggling) {
      for (Verdict& v : JudgeStragglers(job, *comm, now_ns)) verdicts.push_back(std::move(v));
    }
  }
  verdicts = InOrderOfCause(job, std::move(verdicts));
  if (hangs) verdicts.insert(verdicts.end(), consequences.begin(), consequences.end());
  for (Verdict& verdict : verdicts) {
    WeighAge(job, now_ns, &verdict);
    AddSteps(job, &verdict);
    AddGraphs(job, &verdict);
    AddGpuSharing(job, &verdict);
    AddLosses(job, &verdict);
    verdict.summary = WriteSummary(verdict);
    verdict.advice = AdviceFor(verdict);
    AddCallSites(job, &verdict);
  }
  return verdicts;
}

// Both tables are in the order of the communicators' ids.
Diagnoser::Glance Diagnoser::Look(const JobState& job, int64_t now_ns, const Limits& limits) {
  const int64_t before = now_ns - ShortestLimit(limits);
  Glance glance;
  auto finding = findings_.begin();
  for (const auto& [id, comm] : job.communicators) {
    while (finding != findings_.end() && finding->first < id) finding = findings_.erase(finding);
    if (finding == findings_.end() || finding->first != id) {
      finding = findings_.emplace_hint(finding, id, Finding());
    }
    LookAt(job, comm, &finding->second);
    if (!glance.anybody_long) {
      glance.anybody_long = WaitsSinceBefore(comm, now_ns, before, &finding->second);
    }
    if (IsStraggling(comm)) glance.straggling.push_back(&comm);
    ++finding;
  }
  findings_.erase(finding, findings_.end());
  glance.anybody_long =
      glance.anybody_long ||
      std::any_of(job.processes.begin(), job.processes.end(), [&](const Process& process) {
        if (!process.error.empty()) return true;
        return std::any_of(process.blocked.begin(), process.blocked.end(),
                           [&](const BlockedCall& b) { return b.since_ns <= before; });
      });
  return glance;
}

void Diagnoser::LookAt(const JobState& job, const Communicator& comm, Finding* finding) {
  if (finding->version == comm.version && comm.version != 0) return;
  finding->version = comm.version;
  finding->has_calls = false;
  finding->mismatches.clear();
  if (comm.version == 0 || comm.may_diverge) finding->mismatches = JudgeMismatches(job, comm);
}

// Nearly always no rank waits for long, and the members need no examination.
bool Diagnoser::WaitsSinceBefore(const Communicator& comm, int64_t now_ns, int64_t before,
                                 Finding* finding) {
  if (finding->no_wait_before_ns > before && comm.version != 0) return false;
  const int64_t since = WaitingSince(comm);
  finding->no_wait_before_ns = since == 0 ? now_ns : since;
  return since != 0 && since <= before;
}

StuckCalls Diagnoser::Collect(const JobState& job) {
  StuckCalls calls;
  auto at = findings_.begin();
  for (const auto& [id, comm] : job.communicators) {
    Finding& finding = (at++)->second;
    // The search for ranks that never joined covers all processes, so the version of
    // the communicator is not enough.
    if (!finding.has_calls || finding.is_forming || comm.version == 0) {
      finding.calls = MayWait(comm) ? FindStuckCalls(job, comm) : std::vector<StuckCall>();
      finding.has_calls = true;
      finding.is_forming = IsForming(finding.calls);
      // Compares the signatures that could not be compared on arrival.
      const bool told = comm.version == 0 || comm.may_diverge || !comm.keeps_records;
      if (!told && !finding.calls.empty()) finding.mismatches = JudgeMismatches(job, comm);
    }
    for (StuckCall& call : finding.calls) {
      call.communicator = &comm;
      calls.push_back(&call);
    }
  }
  return calls;
}

std::vector<Verdict> Diagnose(const JobState& job, int64_t now_ns, const Limits& limits) {
  return Diagnoser().Run(job, now_ns, limits);
}

}  // namespace rollcall
