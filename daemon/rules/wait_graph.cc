// SPDX-License-Identifier: Apache-2.0
#include "daemon/rules/wait_graph.h"

#include <algorithm>
#include <optional>
#include <set>

#include "daemon/model/components.h"

namespace rollcall {
namespace {

// A waiter in a call, by their indices.
struct WaitRef {
  size_t call;
  size_t waiter;
};

// True if the call has no absent rank and no evidence shows that a rank waits in it: an
// absent rank of another call may be the reason.
bool IsGuess(const StuckCall& call) {
  return call.absents.empty() && !call.size_differs &&
         std::none_of(call.waiters.begin(), call.waiters.end(),
                      [](const Waiter& w) { return w.wait.proof == Proof::kShown; });
}

// The waits of a process, by the quality of the excuse.
struct ProcessWaits {
  std::vector<WaitRef> seen;
  // The process has entered a call that cannot have ended, and its host waits for the GPU.
  std::vector<WaitRef> indirect;
  std::vector<WaitRef> guessed;
};

// The waits of the absent ranks' processes. A hang of a large job has a million waiters, and
// few of them are absent elsewhere: holds only those.
class Index {
 public:
  explicit Index(const StuckCalls& calls) {
    for (const StuckCall* call : calls) {
      for (const Absent& a : call->absents) Want(a.process);
      if (!IsGuess(*call)) continue;
      for (const Waiter& w : call->waiters) Want(w.process);
    }
    for (size_t i = 0; i < calls.size(); ++i) {
      const bool is_guess = IsGuess(*calls[i]);
      for (size_t k = 0; k < calls[i]->waiters.size(); ++k) {
        Add(calls[i]->waiters[k], {i, k}, is_guess);
      }
    }
  }

  const ProcessWaits& Find(int32_t process) const {
    static const auto* const kNone = new ProcessWaits();
    const bool known = process >= 0 && static_cast<size_t>(process) < slot_.size();
    const int32_t slot = known ? slot_[static_cast<size_t>(process)] : -1;
    return slot < 0 ? *kNone : waits_[static_cast<size_t>(slot)];
  }

 private:
  void Want(int32_t process) {
    if (process < 0) return;
    if (static_cast<size_t>(process) >= slot_.size()) {
      slot_.resize(static_cast<size_t>(process) + 1, -1);
    }
    int32_t& slot = slot_[static_cast<size_t>(process)];
    if (slot >= 0) return;
    slot = static_cast<int32_t>(waits_.size());
    waits_.emplace_back();
  }

  void Add(const Waiter& w, WaitRef wait, bool is_guess) {
    if (w.process < 0 || static_cast<size_t>(w.process) >= slot_.size()) return;
    const int32_t slot = slot_[static_cast<size_t>(w.process)];
    if (slot < 0) return;
    ProcessWaits& known = waits_[static_cast<size_t>(slot)];
    const bool indirect = w.wait.proof == Proof::kIndirect;
    (is_guess ? known.guessed : indirect ? known.indirect : known.seen).push_back(wait);
  }

  std::vector<int32_t> slot_;  // by process, into waits_; -1 if it is not absent
  std::vector<ProcessWaits> waits_;
};

bool IsSettled(const Waiter& waiter, const StuckCall& owed, const WaitGraphOptions& options) {
  if (options.settled_after_ns == 0) return true;
  const int64_t waited = options.now_ns - waiter.wait.since_ns;
  const int64_t owed_for = options.now_ns - owed.since_ns;
  return waited >= std::min(options.settled_after_ns, owed_for / 2);
}

// Whether the rank that waits elsewhere is the absent one, and not another rank of its process,
// with a device of its own.
bool IsSameRank(const StuckCall& owed, const Absent& absent, const StuckCall& call,
                const Waiter& waiter) {
  if (!absent.is_sibling) return true;
  const Member* one = FindMember(*owed.communicator, absent.rank);
  const Member* other = FindMember(*call.communicator, waiter.rank);
  return one == nullptr || other == nullptr || one->device < 0 || one->device == other->device;
}

// The calls of `waits` that excuse an absent rank of call `self`.
std::vector<size_t> Excuses(const StuckCalls& calls, const std::vector<WaitRef>& waits, size_t self,
                            const Absent& absent, const WaitGraphOptions& options) {
  std::vector<size_t> excuses;
  for (const WaitRef& wait : waits) {
    const Waiter& waiter = calls[wait.call]->waiters[wait.waiter];
    if (wait.call != self && IsSettled(waiter, *calls[self], options) &&
        IsSameRank(*calls[self], absent, *calls[wait.call], waiter)) {
      excuses.push_back(wait.call);
    }
  }
  return excuses;
}

// The guessed calls in which a rank that waits in `call` waits, too.
std::set<size_t> GuessesOfWaiters(const StuckCall& call, const Index& waiting_in) {
  std::set<size_t> guesses;
  for (const Waiter& w : call.waiters) {
    for (const WaitRef& wait : waiting_in.Find(w.process).guessed) guesses.insert(wait.call);
  }
  return guesses;
}

// The best excuses. A guess is not an excuse if a rank that waits for the absent rank waits in the
// guessed call, too: then the absent rank is the reason why that call does not end. `shared`:
// GuessesOfWaiters() of call `self`, filled in at its first use.
std::vector<size_t> FindExcuses(const StuckCalls& calls, const Index& waiting_in,
                                const Absent& absent, size_t self, const WaitGraphOptions& options,
                                std::optional<std::set<size_t>>* shared) {
  const ProcessWaits& waits = waiting_in.Find(absent.process);
  std::vector<size_t> excuses = Excuses(calls, waits.seen, self, absent, options);
  if (excuses.empty()) excuses = Excuses(calls, waits.indirect, self, absent, options);
  // A guess about a rank without fresh reports is not an excuse.
  if (!excuses.empty() || absent.silent || absent.stale) return excuses;
  for (const size_t guess : Excuses(calls, waits.guessed, self, absent, options)) {
    if (!*shared) *shared = GuessesOfWaiters(*calls[self], waiting_in);
    if ((*shared)->count(guess) == 0) excuses.push_back(guess);
  }
  return excuses;
}

void Excuse(const StuckCalls& calls, const Index& waiting_in, const WaitGraphOptions& options,
            size_t self, WaitNode* node) {
  std::optional<std::set<size_t>> shared;
  for (const Absent& absent : calls[self]->absents) {
    // A process that has ended does not wait, whatever its last report shows.
    std::vector<size_t> excuses;
    if (!MayHaveDied(absent.gone)) {
      excuses = FindExcuses(calls, waiting_in, absent, self, options, &shared);
    }
    if (excuses.empty()) {
      node->guilty.push_back(absent);
    } else {
      node->excused.push_back(absent.rank);
      node->held_up_by.insert(node->held_up_by.end(), excuses.begin(), excuses.end());
    }
  }
  std::sort(node->held_up_by.begin(), node->held_up_by.end());
  node->held_up_by.erase(std::unique(node->held_up_by.begin(), node->held_up_by.end()),
                         node->held_up_by.end());
}

// No evidence shows that a rank waits in this call. If a rank that has entered it waits in
// another call with absent ranks, that other call holds this one up.
void ExplainGuess(const StuckCalls& calls, const Index& waiting_in, size_t self, WaitNode* node) {
  if (!IsGuess(*calls[self])) return;
  std::set<size_t> held_up_by;
  for (const Waiter& w : calls[self]->waiters) {
    for (const WaitRef& wait : waiting_in.Find(w.process).indirect) held_up_by.insert(wait.call);
  }
  node->held_up_by.assign(held_up_by.begin(), held_up_by.end());
}

bool IsCycle(const WaitGraph& graph, const std::vector<size_t>& component, size_t id) {
  if (component.size() < 2) return false;
  for (const size_t i : component) {
    if (!graph.nodes[i].guilty.empty()) return false;
    for (const size_t other : graph.nodes[i].held_up_by) {
      if (graph.nodes[other].component != id) return false;
    }
  }
  return true;
}

// The calls in which the absent rank waits.
std::vector<size_t> WaitsOf(const StuckCalls& calls, const Index& waiting_in, const StuckCall& owed,
                            const Absent& absent) {
  std::vector<size_t> waits;
  for (const WaitRef& wait : waiting_in.Find(absent.process).seen) {
    const StuckCall& call = *calls[wait.call];
    if (IsSameRank(owed, absent, call, call.waiters[wait.waiter])) waits.push_back(wait.call);
  }
  return waits;
}

// A rank inside a teardown has left. In a cycle of calls and teardowns the culprits are the
// ranks inside a teardown that are absent from a call.
bool BlameRanksThatLeft(const StuckCalls& calls, const Index& waiting_in,
                        const std::vector<size_t>& component, WaitGraph* graph) {
  const auto tears_down = [&](size_t i) { return calls[i]->kind == StuckCall::Kind::kTeardown; };
  const std::set<size_t> cycle(component.begin(), component.end());
  bool any = false;
  for (const size_t i : component) {
    if (tears_down(i)) continue;
    WaitNode& node = graph->nodes[i];
    const std::set<int32_t> excused(node.excused.begin(), node.excused.end());
    std::set<int32_t> gone;
    for (const Absent& absent : calls[i]->absents) {
      const std::vector<size_t> waits = WaitsOf(calls, waiting_in, *calls[i], absent);
      const bool left = !waits.empty() && std::all_of(waits.begin(), waits.end(), [&](size_t call) {
        return cycle.count(call) != 0 && tears_down(call);
      });
      if (!left || excused.count(absent.rank) == 0 || !gone.insert(absent.rank).second) continue;
      node.guilty.push_back(absent);
      any = true;
    }
    if (gone.empty()) continue;
    node.excused.erase(std::remove_if(node.excused.begin(), node.excused.end(),
                                      [&](int32_t rank) { return gone.count(rank) != 0; }),
                       node.excused.end());
  }
  return any;
}

}  // namespace

WaitGraph BuildWaitGraph(const StuckCalls& calls, const WaitGraphOptions& options) {
  WaitGraph graph;
  graph.nodes.resize(calls.size());
  const Index waiting_in(calls);
  for (size_t i = 0; i < calls.size(); ++i) {
    Excuse(calls, waiting_in, options, i, &graph.nodes[i]);
    ExplainGuess(calls, waiting_in, i, &graph.nodes[i]);
  }
  std::vector<const std::vector<size_t>*> edges;
  for (const WaitNode& node : graph.nodes) edges.push_back(&node.held_up_by);
  graph.components = FindComponents(edges);
  for (size_t id = 0; id < graph.components.size(); ++id) {
    for (const size_t i : graph.components[id]) graph.nodes[i].component = id;
  }
  for (size_t id = 0; id < graph.components.size(); ++id) {
    if (!IsCycle(graph, graph.components[id], id)) continue;
    if (!BlameRanksThatLeft(calls, waiting_in, graph.components[id], &graph)) {
      graph.cycles.push_back(id);
    }
  }
  return graph;
}

std::vector<size_t> PathToRoot(const WaitGraph& graph, size_t call) {
  std::vector<size_t> path = {call};
  std::vector<bool> seen(graph.nodes.size());
  seen[call] = true;
  while (graph.nodes[path.back()].guilty.empty()) {
    const std::vector<size_t>& edges = graph.nodes[path.back()].held_up_by;
    // Calls in other components are nearer to the end of the path.
    const auto next = std::min_element(edges.begin(), edges.end(), [&](size_t a, size_t b) {
      return graph.nodes[a].component < graph.nodes[b].component;
    });
    if (next == edges.end() || seen[*next]) break;
    seen[*next] = true;
    path.push_back(*next);
  }
  return path;
}

}  // namespace rollcall
