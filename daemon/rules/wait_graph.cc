#include "daemon/rules/wait_graph.h"

#include <algorithm>

namespace rollcall {
namespace {

// Beyond this, doubts are not followed: each costs a look at every call.
constexpr size_t kMostDoubts = 64;
constexpr size_t kMostDoubtedCalls = 4096;

// A waiter in a call.
struct Place {
  size_t call;
  size_t waiter;
};

// Where the absent ranks' processes wait. A hang of a large job has a million
// waiters, and few of them are missed elsewhere: only those are looked up.
class Index {
 public:
  explicit Index(const StuckCalls& calls) {
    for (const StuckCall* call : calls) {
      for (const Absent& a : call->absents) Want(a.process);
    }
    for (size_t i = 0; i < calls.size(); ++i) {
      for (size_t k = 0; k < calls[i]->waiters.size(); ++k) Add(calls[i]->waiters[k], {i, k});
    }
  }

  // Weak evidence of a wait is good for an excuse only where there is no better.
  const std::vector<Place>& Of(int32_t process) const {
    static const auto* const kNone = new std::vector<Place>();
    const bool known = process >= 0 && static_cast<size_t>(process) < slot_.size();
    const int32_t slot = known ? slot_[static_cast<size_t>(process)] : -1;
    return slot < 0 ? *kNone : places_[static_cast<size_t>(slot)].places;
  }

 private:
  struct Places {
    Evidence best = Evidence::kIndirect;
    std::vector<Place> places;
  };

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

  void Add(const Waiter& w, Place place) {
    if (w.process < 0 || static_cast<size_t>(w.process) >= slot_.size()) return;
    const int32_t slot = slot_[static_cast<size_t>(w.process)];
    if (slot < 0) return;
    Places& known = places_[static_cast<size_t>(slot)];
    if (w.wait.evidence != Evidence::kIndirect && known.best == Evidence::kIndirect) {
      known.places.clear();
      known.best = w.wait.evidence;
    }
    if (w.wait.evidence != Evidence::kIndirect || known.best == Evidence::kIndirect) {
      known.places.push_back(place);
    }
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

// It lacks nobody, and that anybody waits in it is a guess: a rank that is known
// to be absent elsewhere may be just why.
bool IsGuess(const StuckCall& call) {
  return call.absents.empty() && !call.size_differs &&
         std::none_of(call.waiters.begin(), call.waiters.end(), [](const Waiter& w) {
           return w.wait.evidence == Evidence::kShown;
         });
}

void Excuse(const StuckCalls& calls, const Index& waiting_in,
            const std::vector<bool>& is_guess, const WaitGraphOptions& options, size_t self,
            WaitNode* node) {
  const StuckCall& call = *calls[self];
  for (const Absent& absent : call.absents) {
    bool excused = false;
    // The dead wait for nobody, whatever was seen of them last.
    if (absent.gone == Gone::kDied) {
      node->guilty.push_back(absent);
      continue;
    }
    for (const Place& place : waiting_in.Of(absent.process)) {
      const StuckCall& other = *calls[place.call];
      if (place.call == self || is_guess[place.call]) continue;
      if (!IsSettled(other.waiters[place.waiter], call, options)) continue;
      node->held_up_by.push_back(place.call);
      excused = true;
    }
    if (excused) {
      node->excused.push_back(absent.rank);
    } else {
      node->guilty.push_back(absent);
    }
  }
  std::sort(node->held_up_by.begin(), node->held_up_by.end());
  node->held_up_by.erase(std::unique(node->held_up_by.begin(), node->held_up_by.end()),
                         node->held_up_by.end());
}

// Has the process entered this call, where nothing would show that it waits?
bool MayWaitIn(const StuckCall& call, int32_t process) {
  if (call.kind != StuckCall::Kind::kCollective) return false;
  for (const auto& [rank, member] : call.communicator->members) {
    if (member.process != process) continue;
    return !member.has_markers && member.entered > call.position;
  }
  return false;
}

// Ranks without markers that are guilty only if one believes that they do not
// wait in a call that somebody else certainly owes.
void FollowDoubts(const StuckCalls& calls, std::vector<WaitNode>* nodes) {
  if (calls.size() > kMostDoubtedCalls) return;
  const std::vector<WaitNode> before = *nodes;
  for (size_t i = 0; i < calls.size(); ++i) {
    WaitNode& node = (*nodes)[i];
    if (node.guilty.empty() || node.guilty.size() > kMostDoubts || !node.held_up_by.empty()) {
      continue;
    }
    std::vector<size_t> elsewhere;
    const bool all = std::all_of(node.guilty.begin(), node.guilty.end(), [&](const Absent& a) {
      if (a.process < 0 || a.gone != Gone::kNo || a.silent) return false;
      bool found = false;
      for (size_t other = 0; other < calls.size(); ++other) {
        if (other == i || before[other].guilty.empty() || !before[other].excused.empty()) continue;
        const bool same = std::any_of(
            before[other].guilty.begin(), before[other].guilty.end(),
            [&](const Absent& b) { return b.process == a.process; });
        if (same || !MayWaitIn(*calls[other], a.process)) continue;
        elsewhere.push_back(other);
        found = true;
      }
      return found;
    });
    if (!all) continue;
    for (const Absent& absent : node.guilty) node.excused.push_back(absent.rank);
    node.guilty.clear();
    node.held_up_by = elsewhere;
    node.by_doubt = true;
  }
  // Two calls that doubt each other say nothing: then both stay as they were.
  for (size_t i = 0; i < calls.size(); ++i) {
    if (!(*nodes)[i].by_doubt) continue;
    const auto& by = (*nodes)[i].held_up_by;
    if (std::any_of(by.begin(), by.end(), [&](size_t k) { return (*nodes)[k].by_doubt; })) {
      (*nodes)[i] = before[i];
    }
  }
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

}  // namespace

WaitGraph BuildWaitGraph(const StuckCalls& calls, const WaitGraphOptions& options) {
  WaitGraph graph;
  graph.nodes.resize(calls.size());
  const Index waiting_in(calls);
  std::vector<bool> is_guess;
  for (const StuckCall* call : calls) is_guess.push_back(IsGuess(*call));
  for (size_t i = 0; i < calls.size(); ++i) {
    Excuse(calls, waiting_in, is_guess, options, i, &graph.nodes[i]);
  }
  FollowDoubts(calls, &graph.nodes);
  graph.components = Components(graph.nodes).Find();
  for (size_t id = 0; id < graph.components.size(); ++id) {
    for (const size_t i : graph.components[id]) graph.nodes[i].component = id;
  }
  for (size_t id = 0; id < graph.components.size(); ++id) {
    if (IsCycle(graph, graph.components[id], id)) graph.cycles.push_back(id);
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
