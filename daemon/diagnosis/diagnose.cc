// SPDX-License-Identifier: Apache-2.0
#include "daemon/diagnosis/diagnose.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/durations.h"
#include "daemon/diagnosis/advice.h"
#include "daemon/diagnosis/explain.h"
#include "daemon/diagnosis/gpu_sharing.h"
#include "daemon/diagnosis/graphs.h"
#include "daemon/diagnosis/host_advice.h"
#include "daemon/diagnosis/host_evidence.h"
#include "daemon/diagnosis/idle_servers.h"
#include "daemon/diagnosis/learned_step.h"
#include "daemon/diagnosis/losses.h"
#include "daemon/diagnosis/starved_hosts.h"
#include "daemon/diagnosis/steps.h"
#include "daemon/diagnosis/summary.h"
#include "daemon/diagnosis/verdict_departure.h"
#include "daemon/diagnosis/verdict_places.h"
#include "daemon/diagnosis/verdict_sites.h"
#include "daemon/rules/divergence.h"
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
constexpr size_t kMostLines = 48;  // of evidence
constexpr size_t kMostByPast = 8;  // calls and cycles

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

void Shorten(std::vector<std::string>* lines) {
  if (lines->size() <= kMostLines) return;
  const size_t more = lines->size() - kMostLines;
  lines->resize(kMostLines);
  lines->push_back(absl::StrCat("and ", CountInWords(more, "more line", "more lines")));
}

// A verdict on too few reports, or on mixed ones, is often over with the next report. It is not the
// root cause while another verdict may be.
void PutSettledFirst(std::vector<Verdict>* verdicts) {
  const auto is_root = [](const Verdict& v) { return !v.is_consequence && !IsWarning(v.cause); };
  const auto roots_end = std::find_if_not(verdicts->begin(), verdicts->end(), is_root);
  std::stable_partition(verdicts->begin(), roots_end,
                        [](const Verdict& v) { return !v.unsettled; });
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

  // The earliest cycles, at most kMostRoots.
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
    const bool may_ask = MayAskPast();
    for (const auto rule : {JudgeCycleByPast, JudgeLeftStep, JudgeCycleByMajority, JudgeOrderByPast,
                            JudgeForkedCreation, JudgeDeadlock}) {
      if (!may_ask && rule != JudgeForkedCreation && rule != JudgeDeadlock) continue;
      auto verdict = rule(job_, calls_, cycle, now_ns_, limits_);
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

std::vector<Verdict> JudgeCalls(const JobState& job, const StuckCalls& calls, int64_t now_ns,
                                const Limits& limits, std::vector<Verdict>* consequences) {
  WaitGraphOptions options;
  options.now_ns = now_ns;
  options.settled_after_ns = std::min(kSecond, limits.suspect_after_ns / 4);
  const WaitGraph graph = BuildWaitGraph(calls, options);
  Roots roots(job, calls, graph, now_ns, limits);
  std::vector<Verdict> verdicts = roots.Find();
  for (Verdict& verdict : verdicts) WeighUnorderedCalls(job, calls, &verdict);
  *consequences = roots.FindConsequences();
  return verdicts;
}

}  // namespace

std::vector<Verdict> Diagnoser::Run(const JobState& job, int64_t now_ns, const Limits& limits) {
  const Overview overview = ExamineCommunicators(job, now_ns, limits);
  std::vector<Verdict> verdicts, consequences;
  if (overview.has_long_wait) {
    verdicts = JudgeCalls(job, Collect(job), now_ns, limits, &consequences);
  }
  for (const Verdict* mismatch : FirstMismatches()) {
    verdicts.push_back(*mismatch);
    Verdict& verdict = verdicts.back();
    if (verdict.since_ns != 0) verdict.waited_ns = std::max<int64_t>(0, now_ns - verdict.since_ns);
  }
  if (std::optional<Verdict> start = JudgeStart(job, now_ns, limits)) {
    verdicts.push_back(*std::move(start));
  }
  const bool hangs = !verdicts.empty();
  if (!hangs) {
    for (const Communicator* comm : overview.straggling) {
      for (Verdict& v : JudgeStragglers(job, *comm, now_ns)) verdicts.push_back(std::move(v));
    }
  }
  verdicts = InOrderOfCause(job, std::move(verdicts));
  if (hangs) verdicts.insert(verdicts.end(), consequences.begin(), consequences.end());
  for (Verdict& verdict : verdicts) {
    WeighAge(job, now_ns, limits, &verdict);
    WeighStops(job, &verdict);
    AddSteps(job, &verdict);
    const size_t period = LearnStep(job, &verdict);
    AddGraphs(job, &verdict);
    AddPlaces(job, &verdict);
    WeighIdleServers(job, &verdict);
    AddGpuSharing(job, &verdict);
    AddLosses(job, &verdict);
    AddForbiddenStacks(job, &verdict);
    AddHostEvidence(job, &verdict);
    WeighStarvedHosts(job, &verdict);
    FindCallSites(job, &verdict);
    AddDeparture(job, &verdict);
    verdict.summary = Summarize(verdict, period);
    verdict.advice = AdviceFor(verdict);
    if (!verdict.is_consequence) AddHostAdvice(&verdict);
    DescribeCallSites(&verdict);
    Shorten(&verdict.evidence);
    Shorten(&verdict.missing_evidence);
  }
  PutSettledFirst(&verdicts);
  const bool changes = overview.has_long_wait || !verdicts.empty();
  next_due_ns_ = changes ? now_ns : overview.next_long_wait_ns;
  return verdicts;
}

// The earliest contradictions, at most kMostRoots.
std::vector<const Verdict*> Diagnoser::FirstMismatches() const {
  std::vector<const Verdict*> first;
  for (const auto& [id, finding] : findings_) {
    for (const Verdict& verdict : finding.mismatches) first.push_back(&verdict);
  }
  if (first.size() <= kMostRoots) return first;
  std::stable_sort(first.begin(), first.end(),
                   [](const Verdict* a, const Verdict* b) { return a->since_ns < b->since_ns; });
  first.resize(kMostRoots);
  return first;
}

// Merges two tables that both have the order of the communicators' ids.
Diagnoser::Overview Diagnoser::ExamineCommunicators(const JobState& job, int64_t now_ns,
                                                    const Limits& limits) {
  const int64_t before = now_ns - ShortestLimit(limits);
  Overview overview;
  auto finding = findings_.begin();
  for (const auto& [id, comm] : job.communicators) {
    while (finding != findings_.end() && finding->first < id) finding = findings_.erase(finding);
    if (finding == findings_.end() || finding->first != id) {
      finding = findings_.emplace_hint(finding, id, Finding());
    }
    ExamineCommunicator(job, comm, &finding->second);
    if (!overview.has_long_wait) {
      overview.has_long_wait = WaitsSinceBefore(comm, now_ns, before, &finding->second);
    }
    if (!overview.has_long_wait) {
      overview.next_long_wait_ns =
          std::min(overview.next_long_wait_ns, NextLongWait(comm, finding->second, limits));
    }
    if (IsStraggling(comm)) overview.straggling.push_back(&comm);
    ++finding;
  }
  findings_.erase(finding, findings_.end());
  ExamineProcesses(job, now_ns, limits, &overview);
  return overview;
}

void Diagnoser::ExamineProcesses(const JobState& job, int64_t now_ns, const Limits& limits,
                                 Overview* overview) {
  const int64_t shortest = ShortestLimit(limits);
  const bool starts = job.communicators.empty();  // see JudgeStart()
  for (const Process& process : job.processes) {
    if (overview->has_long_wait) return;
    if (!process.error.empty()) overview->has_long_wait = true;
    for (const BlockedCall& b : process.blocked) {
      if (b.since_ns <= now_ns - shortest) overview->has_long_wait = true;
      overview->next_long_wait_ns = std::min(overview->next_long_wait_ns, b.since_ns + shortest);
    }
    if (!starts || process.waits_outside_since_ns == 0) continue;
    overview->next_long_wait_ns = std::min(
        overview->next_long_wait_ns, process.waits_outside_since_ns + limits.suspect_after_ns);
  }
}

int64_t Diagnoser::NextLongWait(const Communicator& comm, const Finding& finding,
                                const Limits& limits) {
  if (!MayWait(comm)) return kNever;
  const bool known = finding.waits_version == comm.version;
  if (known && finding.waits_since_ns == 0) return kNever;
  return (known ? finding.waits_since_ns : finding.no_wait_before_ns) + ShortestLimit(limits);
}

void Diagnoser::ExamineCommunicator(const JobState& job, const Communicator& comm,
                                    Finding* finding) {
  if (finding->version == comm.version && comm.version != 0) return;
  finding->version = comm.version;
  finding->has_calls = false;
  finding->mismatches.clear();
  if (comm.version == 0 || comm.may_diverge) finding->mismatches = JudgeMismatches(job, comm);
}

// In most cases no rank waits for long: then this does not examine the members.
bool Diagnoser::WaitsSinceBefore(const Communicator& comm, int64_t now_ns, int64_t before,
                                 Finding* finding) {
  if (finding->no_wait_before_ns > before && comm.version != 0) return false;
  const int64_t since = WaitingSince(comm);
  finding->waits_version = comm.version;
  finding->waits_since_ns = since;
  finding->no_wait_before_ns = since == 0 ? now_ns : since;
  return since != 0 && since <= before;
}

StuckCalls Diagnoser::Collect(const JobState& job) {
  StuckCalls calls;
  RankFinder finder(job);
  auto at = findings_.begin();
  for (const auto& [id, comm] : job.communicators) {
    Finding& finding = (at++)->second;
    // The search for ranks that never joined covers all processes, so the version of
    // the communicator is not enough.
    if (!finding.has_calls || finding.is_forming || comm.version == 0) {
      finding.calls = MayWait(comm) ? FindStuckCalls(job, comm, &finder) : std::vector<StuckCall>();
      finding.has_calls = true;
      finding.is_forming = IsForming(finding.calls);
      // Compares the signatures that JobModel could not compare on arrival.
      const bool compared = comm.version == 0 || comm.may_diverge || !comm.keeps_records;
      if (!compared && !finding.calls.empty()) finding.mismatches = JudgeMismatches(job, comm);
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
