// SPDX-License-Identifier: Apache-2.0
#include "daemon/diagnosis/explain.h"

#include <algorithm>
#include <deque>
#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "daemon/model/progress.h"
#include "daemon/rules/divergence.h"

namespace rollcall {
namespace {

// A process and, if it holds several ranks, the device of the one: what explains a rank explains
// none of its siblings.
using Blamed = std::pair<int32_t, int32_t>;

// A verdict and the verdicts that explain it.
struct Node {
  Verdict verdict;
  std::vector<Blamed> culprits;  // in order, each once
  bool moved_past = false;       // a contradiction that has not stopped the job
  // moved past, but what comes later may be its effect: see SpoilsLater()
  bool spoils = false;
  std::set<size_t> explained_by;
};

using Nodes = std::vector<Node>;
template <typename Key>
using Index = std::map<Key, std::vector<size_t>>;  // -> verdicts

auto SortKey(const Verdict& v) {
  return std::make_tuple(v.since_ns, v.cause, v.communicator, v.position);
}

std::vector<Blamed> BlamedIn(const JobState& job, const Verdict& v) {
  std::vector<Blamed> blamed;
  blamed.reserve(v.culprits.size());
  for (const Culprit& culprit : v.culprits) {
    const Process* process = FindProcess(job, culprit.process);
    const bool is_sibling = process != nullptr && process->holds_several;
    blamed.emplace_back(culprit.process, is_sibling ? culprit.device : -1);
  }
  std::sort(blamed.begin(), blamed.end());
  blamed.erase(std::unique(blamed.begin(), blamed.end()), blamed.end());
  return blamed;
}

bool IsSameFinding(const Node& a, const Node& b) {
  return a.verdict.cause == b.verdict.cause && a.verdict.communicator == b.verdict.communicator &&
         a.verdict.position == b.verdict.position && a.culprits == b.culprits;
}

// A call too few or too many, or another operation, shifts all later calls.
bool Shifts(const Verdict& v) {
  if (!IsContradiction(v.cause)) return false;
  return v.mismatched_fields == std::vector<std::string>{"operation"} ||
         v.divergence == DivergenceKind::kExtra || v.divergence == DivergenceKind::kSkipped ||
         v.divergence == DivergenceKind::kSwapped;
}

// Where a data type is not known, the counts decide: old dumps hold none.
bool HaveOtherSizes(const CallArgs& a, const CallArgs& b) {
  if (a.dtype == kNoDtype || b.dtype == kNoDtype) return a.count != b.count;
  return MessageBytes(a) != MessageBytes(b);
}

bool HasOtherSizes(const Verdict& v) {
  return v.cause == Cause::kArgumentMismatch && v.position_end == 0 &&
         std::any_of(v.culprits.begin(), v.culprits.end(),
                     [&](const Culprit& culprit) { return HaveOtherSizes(culprit.call, v.call); });
}

// True if later calls on the communicator may hang because of a contradiction that did not stop the
// job itself. Messages of different size may leave data behind that a later call takes for its own.
// In a live job other evidence shows what a rank does, and an old contradiction is rarely the
// reason.
bool SpoilsLater(const JobState& job, const Verdict& v) { return job.offline && HasOtherSizes(v); }

Nodes MakeNodes(const JobState& job, std::vector<Verdict> verdicts) {
  std::sort(verdicts.begin(), verdicts.end(),
            [](const Verdict& a, const Verdict& b) { return SortKey(a) < SortKey(b); });
  Nodes nodes;
  for (Verdict& verdict : verdicts) {
    Node node;
    node.culprits = BlamedIn(job, verdict);
    node.moved_past =
        IsContradiction(verdict.cause) && HasMovedPast(job, verdict.communicator, verdict.position);
    node.spoils = node.moved_past && !Shifts(verdict) && SpoilsLater(job, verdict);
    node.verdict = std::move(verdict);
    if (nodes.empty() || !IsSameFinding(nodes.back(), node)) nodes.push_back(std::move(node));
  }
  return nodes;
}

bool ReportsRemoteErrorsOnly(const Verdict& v) {
  return v.cause == Cause::kNcclError && v.certainty != Certainty::kCertain;
}

// A contradiction at `position` of the communicator may cause this wait.
bool TouchesCommunicator(const Verdict& cause, const Verdict& effect) {
  if (cause.communicator == effect.communicator) return cause.position <= effect.position;
  if (effect.cause != Cause::kDeadlock) return false;
  return std::any_of(effect.chain.begin(), effect.chain.end(), [&](const WaitEdge& edge) {
    return edge.communicator == cause.communicator && cause.position <= edge.position;
  });
}

bool IsWithin(const Node& inner, const Node& outer) {
  return std::includes(outer.culprits.begin(), outer.culprits.end(), inner.culprits.begin(),
                       inner.culprits.end());
}

// If all ranks continued after a contradiction, it explains later ones on its communicator, and
// after a shift also those of the same ranks elsewhere.
bool ExplainsContradiction(const Node& cause, const Node& effect) {
  if (!cause.moved_past || !(cause.spoils || Shifts(cause.verdict))) return false;
  if (SortKey(cause.verdict) >= SortKey(effect.verdict)) return false;
  if (cause.verdict.communicator == effect.verdict.communicator) {
    return cause.verdict.position < effect.verdict.position;
  }
  return Shifts(cause.verdict) && !effect.culprits.empty() && IsWithin(effect, cause);
}

// If all ranks continued, arguments that differ are not the cause, unless their sizes differ. Then
// they leave a rank that is absent to its own reasons if it is not one of the culprits.
bool ContradictionExplains(const Node& cause, const Node& effect) {
  if (!IsContradiction(cause.verdict.cause) || IsContradiction(effect.verdict.cause)) return false;
  if (effect.verdict.cause == Cause::kConcurrentUse) return false;
  if (!TouchesCommunicator(cause.verdict, effect.verdict)) return false;
  if (!cause.moved_past) return true;
  if (effect.verdict.cause == Cause::kRankDied || effect.verdict.cause == Cause::kHostLost) {
    return false;
  }
  if (Shifts(cause.verdict)) return true;
  return cause.spoils && (effect.culprits.empty() || IsWithin(effect, cause));
}

// True if `cause`, on the same communicator, can be the reason for `effect`.
bool ExplainsOnCommunicator(const Node& cause, const Node& effect) {
  if (ContradictionExplains(cause, effect)) return true;
  if (cause.verdict.communicator != effect.verdict.communicator) return false;
  const Cause why = cause.verdict.cause;
  const Cause what = effect.verdict.cause;
  if (why == what) return false;
  switch (why) {
    case Cause::kRankDied:
      return !IsContradiction(what) && what != Cause::kConcurrentUse &&
             (what != Cause::kNcclError || ReportsRemoteErrorsOnly(effect.verdict));
    case Cause::kConcurrentUse:
      // NCCL may have accepted the overlapping calls in a different order than on other ranks.
      return what != Cause::kRankDied;
    case Cause::kNcclError:
      return !IsContradiction(what) && what != Cause::kRankDied && what != Cause::kConcurrentUse;
    default:
      return false;
  }
}

void ExplainOnCommunicators(Nodes* nodes) {
  std::map<uint64_t, std::vector<size_t>> by_communicator;
  for (size_t i = 0; i < nodes->size(); ++i) {
    std::set<uint64_t> touched = {(*nodes)[i].verdict.communicator};
    if ((*nodes)[i].verdict.cause == Cause::kDeadlock) {
      for (const WaitEdge& edge : (*nodes)[i].verdict.chain) touched.insert(edge.communicator);
    }
    for (const uint64_t id : touched) by_communicator[id].push_back(i);
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

// Of two verdicts on the same ranks, the one to report: a collective before a send, the more
// certain one, then the earlier one.
bool IsWeightier(const Nodes& nodes, size_t a, size_t b) {
  const Verdict& first = nodes[a].verdict;
  const Verdict& second = nodes[b].verdict;
  const bool first_p2p = first.cause == Cause::kUnmatchedP2p;
  const bool second_p2p = second.cause == Cause::kUnmatchedP2p;
  if (first_p2p != second_p2p) return second_p2p;
  const bool first_end = first.cause == Cause::kTeardownHang;
  const bool second_end = second.cause == Cause::kTeardownHang;
  if (first_end != second_end) return second_end;
  if (first.certainty != second.certainty) return first.certainty > second.certainty;
  return a < b;
}

bool CanExplainByCulprits(const Nodes& nodes, size_t cause, size_t effect) {
  const Verdict& why = nodes[cause].verdict;
  if (cause == effect || nodes[cause].moved_past || why.cause == Cause::kStalledInFlight) {
    return false;
  }
  if (IsWarning(why.cause)) return false;
  if (IsContradiction(why.cause) || why.cause == Cause::kNcclError) return true;
  if (why.cause == Cause::kDeadlock) return nodes[effect].verdict.cause != Cause::kDeadlock;
  return IsWeightier(nodes, cause, effect);
}

// The same ranks are culprits of a more important wait, or contradict the others on another
// communicator: this verdict is one more effect.
void ExplainByCulprits(Nodes* nodes) {
  Index<Blamed> blamed_in;
  for (size_t i = 0; i < nodes->size(); ++i) {
    for (const Blamed& blamed : (*nodes)[i].culprits) {
      if (blamed.first >= 0) blamed_in[blamed].push_back(i);
    }
  }
  for (size_t i = 0; i < nodes->size(); ++i) {
    Node& node = (*nodes)[i];
    if (IsContradiction(node.verdict.cause) || IsWarning(node.verdict.cause)) continue;
    if (node.culprits.empty() || node.verdict.cause == Cause::kConcurrentUse) continue;
    const auto candidates = blamed_in.find(*node.culprits.begin());
    if (candidates == blamed_in.end()) continue;
    for (const size_t other : candidates->second) {
      if (!CanExplainByCulprits(*nodes, other, i)) continue;
      const std::vector<Blamed>& theirs = (*nodes)[other].culprits;
      if (std::includes(theirs.begin(), theirs.end(), node.culprits.begin(), node.culprits.end())) {
        node.explained_by.insert(other);
      }
    }
  }
}

// No evidence shows that a rank waits in the call, or there is no possible culprit.
bool IsGuess(const Verdict& v) {
  if (v.cause == Cause::kStalledInFlight) return v.certainty == Certainty::kPossible;
  return !v.culprits.empty() && std::all_of(v.culprits.begin(), v.culprits.end(),
                                            [](const Culprit& c) { return c.process < 0; });
}

// Any other blocked call of the job may block these ranks as well.
void ExplainGuesses(Nodes* nodes) {
  for (Node& guess : *nodes) {
    if (!IsGuess(guess.verdict)) continue;
    for (size_t other = 0; other < nodes->size(); ++other) {
      const Node& why = (*nodes)[other];
      const bool explains =
          !IsGuess(why.verdict) && !IsWarning(why.verdict.cause) && !why.moved_past;
      if (explains && why.verdict.cause != Cause::kStalledInFlight) {
        guess.explained_by.insert(other);
      }
    }
  }
}

// The ranks of an inferred stall may wait in another communicator's call. A deadlock also
// explains a stall: calls that block each other on the GPU do not end.
void ExplainStalls(Nodes* nodes) {
  const bool any = std::any_of(nodes->begin(), nodes->end(), [](const Node& node) {
    return node.verdict.cause == Cause::kStalledInFlight;
  });
  if (!any) return;
  Index<int32_t> waiting_in;
  for (size_t i = 0; i < nodes->size(); ++i) {
    for (const int32_t process : (*nodes)[i].verdict.waiting_processes) {
      if (process >= 0) waiting_in[process].push_back(i);
    }
  }
  for (size_t i = 0; i < nodes->size(); ++i) {
    Node& node = (*nodes)[i];
    if (node.verdict.cause != Cause::kStalledInFlight) continue;
    for (const int32_t process : node.verdict.waiting_processes) {
      const auto it = waiting_in.find(process);
      if (it == waiting_in.end()) continue;
      for (const size_t other : it->second) {
        const Verdict& why = (*nodes)[other].verdict;
        if (why.cause == Cause::kStalledInFlight || IsWarning(why.cause)) continue;
        if (IsContradiction(why.cause)) continue;  // see ExplainOnCommunicators()
        const bool deadlock = why.cause == Cause::kDeadlock;
        if (deadlock || node.verdict.certainty != Certainty::kCertain) {
          node.explained_by.insert(other);
        }
      }
    }
  }
}

// Two calls of which each may hold the other up are one finding.
void ExplainUnordered(Nodes* nodes) {
  for (size_t i = 0; i < nodes->size(); ++i) {
    if ((*nodes)[i].verdict.beside.empty() || !(*nodes)[i].explained_by.empty()) continue;
    for (size_t other = i + 1; other < nodes->size(); ++other) {
      Node& node = (*nodes)[other];
      const bool is_same = !node.verdict.beside.empty() && node.culprits == (*nodes)[i].culprits;
      if (is_same) node.explained_by.insert(i);
    }
  }
}

// A shift in one communicator and the same rank's contradiction in another one.
void ExplainContradictions(Nodes* nodes) {
  for (Node& effect : *nodes) {
    if (!IsContradiction(effect.verdict.cause)) continue;
    for (size_t cause = 0; cause < nodes->size(); ++cause) {
      if (IsContradiction((*nodes)[cause].verdict.cause) &&
          ExplainsContradiction((*nodes)[cause], effect)) {
        effect.explained_by.insert(cause);
      }
    }
  }
}

// That a contradiction which all ranks have moved past stops a later call is likely, not certain.
void WeighSpoiled(Nodes* nodes) {
  std::set<size_t> causes;
  for (const Node& node : *nodes) causes.insert(node.explained_by.begin(), node.explained_by.end());
  for (const size_t i : causes) {
    Verdict& verdict = (*nodes)[i].verdict;
    if (!(*nodes)[i].spoils) continue;
    verdict.certainty = std::min(verdict.certainty, Certainty::kLikely);
    verdict.missing_evidence.push_back(
        "whether this call stopped the later one: all ranks have moved past it");
  }
}

bool StopsTheJob(const Node& node) {
  return node.explained_by.empty() && IsContradiction(node.verdict.cause) && !node.moved_past;
}

// Somebody may end a rank because others contradict each other: a launcher, a watchdog, the program
// itself. That a rank has died is then a fact, and that this stops the job is likely.
void WeighDeaths(Nodes* nodes) {
  if (std::none_of(nodes->begin(), nodes->end(), StopsTheJob)) return;
  for (Node& node : *nodes) {
    if (node.verdict.cause != Cause::kRankDied || !node.explained_by.empty()) continue;
    node.verdict.certainty = std::min(node.verdict.certainty, Certainty::kLikely);
    node.verdict.missing_evidence.push_back(
        "which came first: other ranks contradict each other in a call that does not end either");
  }
}

// Distance of each verdict from the root that explains it; -1 if no root explains it.
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

// Verdicts in a circle have no root: takes the earliest as the root.
std::vector<int> BreakCircles(Nodes* nodes) {
  std::vector<int> depths = Depths(*nodes);
  for (size_t i = 0; i < nodes->size(); ++i) {
    if (depths[i] >= 0) continue;
    Node& node = (*nodes)[i];
    node.explained_by.clear();
    node.verdict.certainty = Certainty::kPossible;
    node.verdict.missing_evidence.push_back(
        "these findings explain each other in a circle: Rollcall takes the earliest as the cause");
    depths = Depths(*nodes);
  }
  return depths;
}

// Roots first, warnings last. A contradiction that did not stop the job comes after one
// that did.
auto OrderKey(const Node& node, int depth) {
  return std::make_tuple(IsWarning(node.verdict.cause), depth, node.moved_past);
}

}  // namespace

std::vector<Verdict> InOrderOfCause(const JobState& job, std::vector<Verdict> verdicts) {
  Nodes nodes = MakeNodes(job, std::move(verdicts));
  ExplainOnCommunicators(&nodes);
  ExplainContradictions(&nodes);
  ExplainByCulprits(&nodes);
  ExplainStalls(&nodes);
  ExplainUnordered(&nodes);
  ExplainGuesses(&nodes);
  WeighSpoiled(&nodes);
  WeighDeaths(&nodes);
  const std::vector<int> depths = BreakCircles(&nodes);
  std::vector<size_t> order;
  for (size_t i = 0; i < nodes.size(); ++i) {
    nodes[i].verdict.is_consequence = depths[i] > 0;
    order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return OrderKey(nodes[a], depths[a]) < OrderKey(nodes[b], depths[b]);
  });
  std::vector<Verdict> result;
  for (const size_t i : order) {
    Verdict& verdict = nodes[i].verdict;
    if (verdict.is_consequence && verdict.cause == Cause::kStalledInFlight) continue;
    result.push_back(std::move(verdict));
  }
  return result;
}

}  // namespace rollcall
