#include "daemon/diagnose.h"

#include <algorithm>
#include <deque>
#include <map>
#include <set>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "daemon/advice.h"
#include "daemon/rules/progress.h"
#include "daemon/rules/rules.h"
#include "daemon/sentences.h"

namespace rollcall {
namespace {

// A verdict, and the ones that explain it.
struct Node {
  Verdict verdict;
  bool moved_past = false;  // a contradiction that has not stopped the job
  std::set<size_t> explained_by;
};

using Nodes = std::vector<Node>;
using Index = std::map<int32_t, std::vector<size_t>>;  // process -> verdicts

bool IsAboutAbsentees(const Verdict& v) {
  return v.cause == Cause::kMissingRank || v.cause == Cause::kInitIncomplete;
}

auto SortKey(const Verdict& v) {
  return std::make_tuple(v.since_ns, v.cause, v.communicator, v.position);
}

std::set<int32_t> CulpritProcesses(const Verdict& v) {
  std::set<int32_t> processes;
  for (const Culprit& culprit : v.culprits) processes.insert(culprit.process);
  return processes;
}

bool IsSameFinding(const Verdict& a, const Verdict& b) {
  return a.cause == b.cause && a.communicator == b.communicator && a.position == b.position &&
         CulpritProcesses(a) == CulpritProcesses(b);
}

Nodes RunRules(const JobState& job, int64_t now_ns, const Limits& limits) {
  std::vector<Verdict> found;
  for (const Rule rule : AllRules()) {
    for (Verdict& verdict : rule(job, now_ns, limits)) found.push_back(std::move(verdict));
  }
  std::sort(found.begin(), found.end(),
            [](const Verdict& a, const Verdict& b) { return SortKey(a) < SortKey(b); });
  found.erase(std::unique(found.begin(), found.end(), IsSameFinding), found.end());
  Nodes nodes;
  for (Verdict& verdict : found) {
    const bool past =
        IsContradiction(verdict.cause) && HasMovedPast(job, verdict.communicator, verdict.position);
    nodes.push_back({std::move(verdict), past, {}});
  }
  return nodes;
}

Index WaitingIn(const Nodes& nodes) {
  Index index;
  for (size_t i = 0; i < nodes.size(); ++i) {
    for (const int32_t process : nodes[i].verdict.waiting_processes) {
      if (process >= 0) index[process].push_back(i);
    }
  }
  return index;
}

Index BlamedIn(const Nodes& nodes) {
  Index index;
  for (size_t i = 0; i < nodes.size(); ++i) {
    for (const int32_t process : CulpritProcesses(nodes[i].verdict)) {
      if (process >= 0) index[process].push_back(i);
    }
  }
  return index;
}

// An absent rank that waits elsewhere itself is held up there. Such culprits
// are dropped where others have no such excuse; where all have one, the whole
// verdict is a consequence.
void ExcuseAbsentees(const Index& waiting_in, size_t self, Node* node) {
  std::vector<Culprit> without_excuse;
  std::vector<int32_t> excused;
  std::set<size_t> excuses;
  for (const Culprit& culprit : node->verdict.culprits) {
    bool is_excused = false;
    const auto it = waiting_in.find(culprit.process);
    if (it != waiting_in.end()) {
      for (const size_t other : it->second) {
        if (other == self) continue;
        excuses.insert(other);
        is_excused = true;
      }
    }
    if (is_excused) {
      excused.push_back(culprit.rank);
    } else {
      without_excuse.push_back(culprit);
    }
  }
  if (excused.empty()) return;
  if (without_excuse.empty()) {
    node->explained_by = std::move(excuses);
    return;
  }
  node->verdict.culprits = std::move(without_excuse);
  node->verdict.evidence.push_back(
      absl::StrCat("also absent, but held up in another call: ", RanksInWords(excused)));
}

// Can `cause`, on the same communicator, be why `effect` waits?
bool ExplainsOnCommunicator(const Node& cause, const Node& effect) {
  if (IsContradiction(effect.verdict.cause)) return false;
  if (cause.verdict.cause == Cause::kRankDied) return effect.verdict.cause != Cause::kRankDied;
  if (!IsContradiction(cause.verdict.cause)) return false;
  if (cause.verdict.position > effect.verdict.position) return false;
  if (cause.moved_past && effect.verdict.cause == Cause::kRankDied) return false;
  // Other arguments, or nobody knows what, and all went on: that was not it. An
  // operation too many or too few shifts all that follows.
  return !cause.moved_past ||
         cause.verdict.mismatched_fields == std::vector<std::string>{"operation"};
}

void ExplainOnCommunicators(Nodes* nodes) {
  std::map<uint64_t, std::vector<size_t>> by_communicator;
  for (size_t i = 0; i < nodes->size(); ++i) {
    by_communicator[(*nodes)[i].verdict.communicator].push_back(i);
  }
  for (const auto& [id, members] : by_communicator) {
    for (const size_t effect : members) {
      for (const size_t cause : members) {
        if (cause != effect && ExplainsOnCommunicator((*nodes)[cause], (*nodes)[effect])) {
          (*nodes)[effect].explained_by.insert(cause);
        }
      }
    }
  }
}

// The same ranks are to blame in an earlier wait, or contradict the others
// elsewhere: this is one more effect of it.
void ExplainByCulprits(const Index& blamed_in, Nodes* nodes) {
  for (size_t i = 0; i < nodes->size(); ++i) {
    Node& node = (*nodes)[i];
    const std::set<int32_t> culprits = CulpritProcesses(node.verdict);
    if (IsContradiction(node.verdict.cause) || culprits.empty()) continue;
    const auto candidates = blamed_in.find(*culprits.begin());
    if (candidates == blamed_in.end()) continue;
    for (const size_t other : candidates->second) {
      const Node& cause = (*nodes)[other];
      if (other == i || cause.moved_past) continue;
      if (cause.verdict.cause == Cause::kStalledInFlight) continue;
      if (!IsContradiction(cause.verdict.cause) && other > i) continue;
      const std::set<int32_t> theirs = CulpritProcesses(cause.verdict);
      if (std::includes(theirs.begin(), theirs.end(), culprits.begin(), culprits.end())) {
        node.explained_by.insert(other);
      }
    }
  }
}

// A stall that is only inferred may be the wait for another communicator's call.
void ExplainInferredStalls(const Index& waiting_in, Nodes* nodes) {
  for (size_t i = 0; i < nodes->size(); ++i) {
    Node& node = (*nodes)[i];
    if (node.verdict.cause != Cause::kStalledInFlight) continue;
    if (node.verdict.certainty == Certainty::kCertain) continue;
    for (const int32_t process : node.verdict.waiting_processes) {
      const auto it = waiting_in.find(process);
      if (it == waiting_in.end()) continue;
      for (const size_t other : it->second) {
        if ((*nodes)[other].verdict.cause != Cause::kStalledInFlight) {
          node.explained_by.insert(other);
        }
      }
    }
  }
}

// Distance of each verdict from the root that explains it; -1: none does.
std::vector<int> Depths(const Nodes& nodes) {
  std::vector<std::vector<size_t>> effects(nodes.size());
  std::vector<int> depths(nodes.size(), -1);
  std::deque<size_t> queue;
  for (size_t i = 0; i < nodes.size(); ++i) {
    for (const size_t cause : nodes[i].explained_by) effects[cause].push_back(i);
    if (!nodes[i].explained_by.empty()) continue;
    depths[i] = 0;
    queue.push_back(i);
  }
  for (; !queue.empty(); queue.pop_front()) {
    for (const size_t effect : effects[queue.front()]) {
      if (depths[effect] >= 0) continue;
      depths[effect] = depths[queue.front()] + 1;
      queue.push_back(effect);
    }
  }
  return depths;
}

// Waits that explain each other have no root: the earliest is taken for it.
std::vector<int> BreakCycles(Nodes* nodes) {
  std::vector<int> depths = Depths(*nodes);
  for (size_t i = 0; i < nodes->size(); ++i) {
    if (depths[i] >= 0) continue;
    Node& node = (*nodes)[i];
    node.explained_by.clear();
    node.verdict.certainty = Certainty::kPossible;
    node.verdict.missing_evidence.push_back(
        "these waits explain each other in a circle: the earliest is taken for the cause");
    depths = Depths(*nodes);
  }
  return depths;
}

std::vector<Verdict> InOrder(Nodes nodes, const std::vector<int>& depths) {
  std::vector<size_t> order;
  for (size_t i = 0; i < nodes.size(); ++i) {
    nodes[i].verdict.is_consequence = depths[i] > 0;
    order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return std::make_pair(depths[a], nodes[a].moved_past) <
           std::make_pair(depths[b], nodes[b].moved_past);
  });
  std::vector<Verdict> verdicts;
  for (const size_t i : order) {
    Verdict& verdict = nodes[i].verdict;
    // That a call does not finish is no news where it is known why, and what it
    // says of the program would be wrong.
    if (verdict.is_consequence && verdict.cause == Cause::kStalledInFlight) continue;
    verdict.summary = SummaryOf(verdict);
    verdict.advice = AdviceFor(verdict);
    verdicts.push_back(std::move(verdict));
  }
  return verdicts;
}

}  // namespace

std::vector<Verdict> Diagnose(const JobState& job, int64_t now_ns, const Limits& limits) {
  Nodes nodes = RunRules(job, now_ns, limits);
  const Index waiting_in = WaitingIn(nodes);
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (IsAboutAbsentees(nodes[i].verdict)) ExcuseAbsentees(waiting_in, i, &nodes[i]);
  }
  ExplainOnCommunicators(&nodes);
  ExplainByCulprits(BlamedIn(nodes), &nodes);
  ExplainInferredStalls(waiting_in, &nodes);
  const std::vector<int> depths = BreakCycles(&nodes);
  return InOrder(std::move(nodes), depths);
}

}  // namespace rollcall
