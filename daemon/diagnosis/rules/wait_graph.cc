// SPDX-License-Identifier: Apache-2.0
#include "daemon/diagnosis/rules/wait_graph.h"

#include <algorithm>
#include <set>

namespace rollcall {
namespace {

// A waiter in a call.
struct Place {
  size_t call;
  size_t waiter;
};

// It lacks nobody, and that anybody waits in it is a guess: a rank that is known
// to be absent elsewhere may be just why.
bool IsGuess(const StuckCall& call) {
  return call.absents.empty() && !call.size_differs &&
         std::none_of(call.waiters.begin(), call.waiters.end(),
                      [](const Waiter& w) { return w.wait.proof == Proof::kShown; });
}

// Where a process waits, by how good an excuse that is.
struct Places {
  std::vector<Place> seen;
  // It has entered a call that cannot have ended, and its host waits for the GPU.
  std::vector<Place> indirect;
  std::vector<Place> guessed;
};

// Where the absent ranks' processes wait. A hang of a large job has a million
// waiters, and few of them are missed elsewhere: only those are looked up.
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

  const Places& Of(int32_t process) const {
    static const auto* const kNone = new Places();
    const bool known = process >= 0 && static_cast<size_t>(process) < slot_.size();
    const int32_t slot = known ? slot_[static_cast<size_t>(process)] : -1;
    return slot < 0 ? *kNone : places_[static_cast<size_t>(slot)];
  }

 private:
  void Want(int32_t process) {
    if (process < 0) return;
    if (static_cast<size_t>(process) >= slot_.size()) {
      slot_.resize(static_cast<size_t>(process) + 1, -1);
    }
    int32_t& slot = slot_[static_cast<size_t>(process)];
    if (slot >= 0) return;
    slot = static_cast<int32_t>(places_.size());
    places_.emplace_back();
  }

  void Add(const Waiter& w, Place place, bool is_guess) {
    if (w.process < 0 || static_cast<size_t>(w.process) >= slot_.size()) return;
    const int32_t slot = slot_[static_cast<size_t>(w.process)];
    if (slot < 0) return;
    Places& known = places_[static_cast<size_t>(slot)];
    const bool indirect = w.wait.proof == Proof::kIndirect;
    (is_guess ? known.guessed : indirect ? known.indirect : known.seen).push_back(place);
  }

  std::vector<int32_t> slot_;  // by process, into places_; -1: nobody misses it
  std::vector<Places> places_;
};

bool IsSettled(const Waiter& waiter, const StuckCall& owed, const WaitGraphOptions& options) {
  if (options.settled_after_ns == 0) return true;
  const int64_t waited = options.now_ns - waiter.wait.since_ns;
  const int64_t owed_for = options.now_ns - owed.since_ns;
  return waited >= std::min(options.settled_after_ns, owed_for / 2);
}

// Those of `places` that hold the absent rank up in another call.
std::vector<size_t> Excuses(const StuckCalls& calls, const std::vector<Place>& places, size_t self,
                            const WaitGraphOptions& options) {
  std::vector<size_t> excuses;
  for (const Place& place : places) {
    const Waiter& waiter = calls[place.call]->waiters[place.waiter];
    if (place.call != self && IsSettled(waiter, *calls[self], options)) {
      excuses.push_back(place.call);
    }
  }
  return excuses;
}

bool ShareAWaiter(const StuckCall& a, const StuckCall& b) {
  std::set<int32_t> processes;
  for (const Waiter& w : a.waiters) processes.insert(w.process);
  return std::any_of(b.waiters.begin(), b.waiters.end(),
                     [&](const Waiter& w) { return processes.count(w.process) != 0; });
}

// The best there are. A guess is none where somebody who waits for the absent
// rank waits in the guessed call, too: then that is why it does not end.
std::vector<size_t> ExcusesOf(const StuckCalls& calls, const Places& places, size_t self,
                              const WaitGraphOptions& options, bool unheard) {
  std::vector<size_t> excuses = Excuses(calls, places.seen, self, options);
  if (excuses.empty()) excuses = Excuses(calls, places.indirect, self, options);
  // What was guessed of a rank that is heard no more is no excuse.
  if (!excuses.empty() || unheard) return excuses;
  for (const size_t guess : Excuses(calls, places.guessed, self, options)) {
    if (!ShareAWaiter(*calls[guess], *calls[self])) excuses.push_back(guess);
  }
  return excuses;
}

void Excuse(const StuckCalls& calls, const Index& waiting_in, const WaitGraphOptions& options,
            size_t self, WaitNode* node) {
  for (const Absent& absent : calls[self]->absents) {
    // The dead wait for nobody, whatever was seen of them last.
    std::vector<size_t> excuses;
    if (!MayHaveDied(absent.gone)) {
      excuses = ExcusesOf(calls, waiting_in.Of(absent.process), self, options,
                          absent.silent || absent.stale);
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

// A call in which nobody is seen to wait, while one who has entered it waits in
// another that lacks somebody: that is what holds it up.
void ExplainGuess(const StuckCalls& calls, const Index& waiting_in, size_t self, WaitNode* node) {
  if (!IsGuess(*calls[self])) return;
  std::set<size_t> held_up_by;
  for (const Waiter& w : calls[self]->waiters) {
    for (const Place& place : waiting_in.Of(w.process).indirect) held_up_by.insert(place.call);
  }
  node->held_up_by.assign(held_up_by.begin(), held_up_by.end());
}

// Tarjan's strongly connected components, without recursion: chains are as long
// as jobs are large. A component comes out after all that it waits for.
class Components {
 public:
  explicit Components(const std::vector<WaitNode>& nodes)
      : nodes_(nodes), index_(nodes.size(), 0), low_(nodes.size(), 0), on_stack_(nodes.size()) {}

  std::vector<std::vector<size_t>> Find() {
    for (size_t i = 0; i < nodes_.size(); ++i) {
      if (index_[i] == 0) Visit(i);
    }
    return std::move(found_);
  }

 private:
  struct Step {
    size_t node;
    size_t next;
  };

  void Enter(size_t node) {
    index_[node] = low_[node] = ++count_;
    stack_.push_back(node);
    on_stack_[node] = true;
    way_.push_back({node, 0});
  }

  void Visit(size_t root) {
    Enter(root);
    while (!way_.empty()) {
      Step& step = way_.back();
      const std::vector<size_t>& edges = nodes_[step.node].held_up_by;
      if (step.next < edges.size()) {
        const size_t to = edges[step.next++];
        if (index_[to] == 0) {
          Enter(to);
        } else if (on_stack_[to]) {
          low_[step.node] = std::min(low_[step.node], index_[to]);
        }
        continue;
      }
      Leave(step.node);
    }
  }

  void Leave(size_t node) {
    way_.pop_back();
    if (!way_.empty()) low_[way_.back().node] = std::min(low_[way_.back().node], low_[node]);
    if (low_[node] != index_[node]) return;
    std::vector<size_t> component;
    size_t member = 0;
    do {
      member = stack_.back();
      stack_.pop_back();
      on_stack_[member] = false;
      component.push_back(member);
    } while (member != node);
    std::sort(component.begin(), component.end());
    found_.push_back(std::move(component));
  }

  const std::vector<WaitNode>& nodes_;
  std::vector<size_t> index_, low_;
  std::vector<bool> on_stack_;
  std::vector<size_t> stack_;
  std::vector<Step> way_;
  std::vector<std::vector<size_t>> found_;
  size_t count_ = 0;
};

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

// Whoever tears down has left: in a cycle of calls and teardowns it is the one
// that stands in a teardown who owes a call.
bool BlameWhoLeft(const StuckCalls& calls, const Index& waiting_in,
                  const std::vector<size_t>& component, WaitGraph* graph) {
  const auto tears_down = [&](size_t i) { return calls[i]->kind == StuckCall::Kind::kTeardown; };
  const std::set<size_t> cycle(component.begin(), component.end());
  bool any = false;
  for (const size_t i : component) {
    if (tears_down(i)) continue;
    WaitNode& node = graph->nodes[i];
    for (const Absent& absent : calls[i]->absents) {
      const std::vector<Place>& places = waiting_in.Of(absent.process).seen;
      const bool left =
          !places.empty() && std::all_of(places.begin(), places.end(), [&](const Place& place) {
            return cycle.count(place.call) != 0 && tears_down(place.call);
          });
      const auto excused = std::find(node.excused.begin(), node.excused.end(), absent.rank);
      if (!left || excused == node.excused.end()) continue;
      node.excused.erase(excused);
      node.guilty.push_back(absent);
      any = true;
    }
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
  graph.components = Components(graph.nodes).Find();
  for (size_t id = 0; id < graph.components.size(); ++id) {
    for (const size_t i : graph.components[id]) graph.nodes[i].component = id;
  }
  for (size_t id = 0; id < graph.components.size(); ++id) {
    if (!IsCycle(graph, graph.components[id], id)) continue;
    if (!BlameWhoLeft(calls, waiting_in, graph.components[id], &graph)) graph.cycles.push_back(id);
  }
  return graph;
}

std::vector<size_t> WayToRoot(const WaitGraph& graph, size_t call) {
  std::vector<size_t> way = {call};
  std::vector<bool> seen(graph.nodes.size());
  seen[call] = true;
  while (graph.nodes[way.back()].guilty.empty()) {
    const std::vector<size_t>& edges = graph.nodes[way.back()].held_up_by;
    // Calls in other components are nearer to the end of the way.
    const auto next = std::min_element(edges.begin(), edges.end(), [&](size_t a, size_t b) {
      return graph.nodes[a].component < graph.nodes[b].component;
    });
    if (next == edges.end() || seen[*next]) break;
    seen[*next] = true;
    way.push_back(*next);
  }
  return way;
}

}  // namespace rollcall
