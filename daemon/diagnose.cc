#include "daemon/diagnose.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "daemon/advice.h"
#include "daemon/explain.h"
#include "daemon/rules/divergence.h"
#include "daemon/rules/rules.h"
#include "daemon/rules/wait_graph.h"
#include "daemon/sentences.h"

namespace rollcall {
namespace {

constexpr int64_t kSecond = 1'000'000'000;
// A hang of a large job holds up thousands of calls: enough are told.
constexpr size_t kMostRoots = 64;
constexpr size_t kMostConsequences = 16;
constexpr size_t kMostChain = 16;

int64_t Earliest(int64_t a, int64_t b) {
  if (a == 0 || b == 0) return std::max(a, b);
  return std::min(a, b);
}

// The oldest wait that a member of the communicator shows, of any kind.
int64_t WaitingSince(const Communicator& comm) {
  int64_t since = 0;
  for (const auto& [rank, m] : comm.members) {
    since = Earliest(since, m.waiting_since_ns);
    since = Earliest(since, m.host_blocked_since_ns);
    since = Earliest(since, m.host_waits_since_ns);
    since = Earliest(since, m.p2p_waiting_since_ns);
    if (m.state == MemberState::kInitializing) since = Earliest(since, m.init_entered_ns);
  }
  return since;
}

// The shortest wait that any rule looks at.
int64_t ShortestLimit(const Limits& limits) {
  return std::min({limits.suspect_after_ns, limits.suspect_floor_ns, limits.absent_for_good_ns});
}

WaitEdge EdgeOf(const JobState& job, const StuckCall& call) {
  WaitEdge edge;
  for (const Waiter& w : call.waiters) edge.from.push_back(PublicRank(job, w.process, w.rank));
  for (const Absent& a : call.absents) edge.to.push_back(PublicRank(job, a.process, a.rank));
  edge.communicator = call.communicator->id;
  edge.communicator_name = call.communicator->name;
  edge.position = call.position;
  edge.call = call.call;
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
      absl::StrCat("also absent, but held up in another call: ", RanksInWords(ranks)));
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
      const bool ends_here = !node.guilty.empty() || calls_[i]->absents.empty();
      if (!ends_here || verdicts.size() >= kMostRoots) continue;
      for (Verdict& v : Judge({job_, *calls_[i], node.guilty, now_ns_, limits_})) {
        AddExcused(job_, *calls_[i], node, &v);
        verdicts.push_back(std::move(v));
      }
    }
    for (const size_t cycle : graph_.cycles) AddCycle(graph_.components[cycle], &verdicts);
    auto inversion = JudgeOrderInversion(job_, calls_, now_ns_, limits_);
    if (inversion) verdicts.push_back(*std::move(inversion));
    return verdicts;
  }

  // What the roots have brought about elsewhere, with the way there. Only where
  // there is a root to speak of.
  std::vector<Verdict> FindConsequences() {
    std::vector<Verdict> verdicts;
    for (const size_t i : InOrder()) {
      const WaitNode& node = graph_.nodes[i];
      if (!node.guilty.empty() || node.held_up_by.empty() || InCycle(i)) continue;
      std::vector<Verdict> found = Judge({job_, *calls_[i], calls_[i]->absents, now_ns_, limits_});
      if (found.empty()) continue;
      Verdict& v = found.front();
      v.is_consequence = true;
      for (const size_t step : WayToRoot(graph_, i)) {
        if (v.chain.size() < kMostChain) v.chain.push_back(EdgeOf(job_, *calls_[step]));
      }
      if (node.by_doubt) {
        v.missing_evidence.push_back(
            "the absent are not seen waiting: they have entered a call elsewhere that cannot "
            "have ended");
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
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      return calls_[a]->since_ns < calls_[b]->since_ns;
    });
    return order;
  }

  bool InCycle(size_t call) const {
    return std::find(graph_.cycles.begin(), graph_.cycles.end(), graph_.nodes[call].component) !=
           graph_.cycles.end();
  }

  void AddCycle(const std::vector<size_t>& cycle, std::vector<Verdict>* verdicts) const {
    // Somebody in it has broken NCCL, or its rules: that is said of the call.
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
  Look(job);
  std::vector<Verdict> verdicts, consequences;
  if (IsAnybodyLong(job, now_ns, limits)) {
    verdicts = JudgeCalls(job, Collect(job), now_ns, limits, &consequences);
  }
  for (const auto& [id, finding] : findings_) {
    for (Verdict verdict : finding.mismatches) {
      if (verdict.since_ns != 0) verdict.waited_ns = std::max<int64_t>(0, now_ns - verdict.since_ns);
      verdicts.push_back(std::move(verdict));
    }
  }
  const bool hangs = !verdicts.empty();
  if (!hangs) {
    for (const auto& [id, comm] : job.communicators) {
      for (Verdict& v : JudgeStragglers(job, comm, now_ns)) verdicts.push_back(std::move(v));
    }
  }
  verdicts = InOrderOfCause(job, std::move(verdicts));
  if (hangs) verdicts.insert(verdicts.end(), consequences.begin(), consequences.end());
  for (Verdict& verdict : verdicts) {
    verdict.summary = SummaryOf(verdict);
    verdict.advice = AdviceFor(verdict);
  }
  return verdicts;
}

void Diagnoser::Look(const JobState& job) {
  ++runs_;
  for (const auto& [id, comm] : job.communicators) {
    Finding& finding = findings_[id];
    finding.seen_in = runs_;
    if (finding.version == comm.version && comm.version != 0) continue;
    finding.version = comm.version;
    finding.waiting_since_ns = WaitingSince(comm);
    finding.has_calls = false;
    finding.mismatches = JudgeMismatches(job, comm, 0);
  }
  for (auto at = findings_.begin(); at != findings_.end();) {
    at = at->second.seen_in == runs_ ? std::next(at) : findings_.erase(at);
  }
}

// Nearly always nobody waits for long; then no call is looked at more closely.
bool Diagnoser::IsAnybodyLong(const JobState& job, int64_t now_ns, const Limits& limits) const {
  const int64_t before = now_ns - ShortestLimit(limits);
  for (const auto& [id, finding] : findings_) {
    if (finding.waiting_since_ns != 0 && finding.waiting_since_ns <= before) return true;
  }
  return std::any_of(job.processes.begin(), job.processes.end(), [&](const Process& process) {
    return std::any_of(process.blocked.begin(), process.blocked.end(),
                       [&](const BlockedCall& b) { return b.since_ns <= before; });
  });
}

StuckCalls Diagnoser::Collect(const JobState& job) {
  StuckCalls calls;
  for (const auto& [id, comm] : job.communicators) {
    Finding& finding = findings_[id];
    // Who never came to a communicator is looked for among all processes, so
    // that its own version says too little.
    if (!finding.has_calls || !HasFormed(comm) || comm.version == 0) {
      finding.calls = FindStuckCalls(job, comm);
      finding.has_calls = true;
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
