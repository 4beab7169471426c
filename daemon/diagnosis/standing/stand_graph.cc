// SPDX-License-Identifier: Apache-2.0
#include "daemon/diagnosis/standing/stand_graph.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "daemon/diagnosis/waits/idle_servers.h"
#include "daemon/model/components.h"

namespace rollcall {
namespace {

using Place = std::pair<std::string, int32_t>;  // host, pid

// A wait in which the other side is a process that this one has started, if nothing shows another.
bool MayBeForChildren(StandKind kind) {
  switch (kind) {
    case StandKind::kChild:
    case StandKind::kPool:
    case StandKind::kDataLoader:
    case StandKind::kProcessLock:
    case StandKind::kProcessCondition:
    case StandKind::kProcessQueue:
    case StandKind::kBarrier:
    case StandKind::kSemaphore:
      return true;
    default:
      return false;
  }
}

// Where the main thread waits for another one, that one's wait says more.
StandFunction WaitOf(const std::vector<StackPlace>& places) {
  const StandFunction main = StandsIn(places.front());
  if (main.kind != StandKind::kThread && main.kind != StandKind::kFuture) return main;
  for (const StackPlace& place : places) {
    if (!place.other_end.empty()) return StandsIn(place);
  }
  return main;
}

class Builder {
 public:
  Builder(const JobState& job, const std::vector<int32_t>& ranks) : job_(job), ranks_(ranks) {}

  StandGraph Build() {
    for (const int32_t process : ranks_) AddRank(process);
    for (size_t i = 0; i < ranks_.size(); ++i) AddChildren(i);
    FindHolders();
    for (size_t i = 0; i < ranks_.size(); ++i) AddEdges(i);
    FindRings();
    return std::move(graph_);
  }

 private:
  const Process& At(int32_t process) const { return job_.processes[static_cast<size_t>(process)]; }

  void AddRank(int32_t process) {
    const Process& known = At(process);
    const Standing& standing = *known.standing;
    StandNode node;
    node.process = process;
    node.rank = known.global_rank;
    node.pid = known.pid;
    node.in = StandsIn(standing.place, standing.state, standing.wait_channel);
    node.at = standing.place.at;
    node.inside = standing.place.inside;
    node.is_idle = IsIdlePlace(standing.place);
    const auto mark = standing.newest.threads.find({known.pid, known.pid});
    if (mark != standing.newest.threads.end()) node.position = mark->second.position;
    // Each rank has a node of its own, also where two of them have one number: in containers that
    // have the same host name.
    nodes_.emplace(Place(known.host, node.pid), graph_.nodes.size());
    graph_.nodes.push_back(std::move(node));
  }

  void AddChildren(size_t rank) {
    const Process& known = At(ranks_[rank]);
    for (const StandingChild& child : known.standing->children) {
      // A rank may have started others.
      if (nodes_.count({known.host, child.pid}) != 0) continue;
      StandNode node;
      node.process = ranks_[rank];
      node.rank = known.global_rank;
      node.is_child = true;
      node.pid = child.pid;
      node.name = child.name;
      if (!child.places.empty()) {
        node.in = WaitOf(child.places);
        node.at = child.places.front().at;
        node.is_idle = IsIdlePlace(child.places.front());
      }
      Add(known.host, std::move(node));
    }
  }

  size_t Add(const std::string& host, StandNode node) {
    const auto [at, is_new] = nodes_.emplace(Place(host, node.pid), graph_.nodes.size());
    if (is_new) graph_.nodes.push_back(std::move(node));
    return at->second;
  }

  void AddEdges(size_t rank) {
    const Process& known = At(ranks_[rank]);
    const Standing& standing = *known.standing;
    AddPlaces(known, rank, standing.place, OtherPlaces(standing.threads));
    AddLock(known, rank);
    if (graph_.nodes[rank].waits_for.empty()) AddChildrenOf(known, rank, known.pid);
    for (const StandingChild& child : standing.children) {
      const size_t at = nodes_[{known.host, child.pid}];
      const bool is_of_it = graph_.nodes[at].is_child && graph_.nodes[at].process == ranks_[rank];
      if (!is_of_it || child.places.empty()) continue;
      AddPlaces(known, at, child.places.front(), {child.places.begin() + 1, child.places.end()});
      if (graph_.nodes[at].waits_for.empty()) AddChildrenOf(known, at, child.pid);
    }
  }

  static std::vector<StackPlace> OtherPlaces(const std::vector<ThreadPlace>& threads) {
    std::vector<StackPlace> places;
    for (const ThreadPlace& thread : threads) places.push_back(thread.place);
    return places;
  }

  // What the main thread waits for; if that is nobody else, what the threads wait for that it may
  // wait for: those of a server too, which bring what it waits for.
  void AddPlaces(const Process& owner, size_t node, const StackPlace& main,
                 const std::vector<StackPlace>& others) {
    for (const int32_t pid : main.other_end) AddEdge(owner, node, pid);
    if (!graph_.nodes[node].waits_for.empty() || graph_.nodes[node].is_idle) return;
    for (const StackPlace& place : others) {
      for (const int32_t pid : place.other_end) AddEdge(owner, node, pid);
    }
  }

  void AddChildrenOf(const Process& owner, size_t node, int32_t pid) {
    if (!MayBeForChildren(graph_.nodes[node].in.kind)) return;
    for (const StandingChild& child : owner.standing->children) {
      const auto at = nodes_.find({owner.host, child.pid});
      if (child.parent != pid || child.places.empty() || at == nodes_.end()) continue;
      if (graph_.nodes[at->second].is_idle) continue;
      AddTo(node, at->second);
    }
  }

  // One that polls for a lock is in no list of the kernel: the only other holder has it.
  void AddLock(const Process& owner, size_t node) {
    for (const FileLockSeen& lock : owner.standing->locks) {
      if (!lock.waits) continue;
      graph_.nodes[node].on = lock.path;
      if (lock.holder > 0 && lock.holder != owner.pid) AddEdge(owner, node, lock.holder);
      if (lock.holder == 0) AddHoldersOf(lock, owner, node);
    }
    const StandKind kind = graph_.nodes[node].in.kind;
    if (kind != StandKind::kFileLock && kind != StandKind::kDatabase) return;
    const auto held = holders_.find(owner.host);
    if (!graph_.nodes[node].waits_for.empty() || held == holders_.end()) return;
    if (held->second.is_one) graph_.nodes[node].on = held->second.path;
    if (held->second.is_one) AddTo(node, held->second.node);
  }

  // A lock of a descriptor: the kernel names no holder, but who has locked which bytes.
  void AddHoldersOf(const FileLockSeen& lock, const Process& owner, size_t node) {
    for (size_t i = 0; i < ranks_.size(); ++i) {
      const Process& other = At(ranks_[i]);
      if (i == node || other.host != owner.host) continue;
      const std::vector<FileLockSeen>& locks = other.standing->locks;
      const bool holds = std::any_of(locks.begin(), locks.end(), [&](const FileLockSeen& held) {
        return !held.waits && held.inode == lock.inode && held.first <= lock.last &&
               lock.first <= held.last;
      });
      if (holds) AddTo(node, i);
    }
  }

  // The ranks of each host that hold locks of files.
  void FindHolders() {
    for (size_t i = 0; i < ranks_.size(); ++i) {
      const Process& known = At(ranks_[i]);
      for (const FileLockSeen& lock : known.standing->locks) {
        if (lock.waits) continue;
        const auto [at, is_new] = holders_.emplace(known.host, Holder{i, lock.path, true});
        if (!is_new && at->second.node != i) at->second.is_one = false;
      }
    }
  }

  void AddEdge(const Process& owner, size_t node, int32_t pid) {
    if (pid == graph_.nodes[node].pid) return;
    StandNode other;
    other.pid = pid;
    const auto name = owner.standing->names.find(pid);
    if (name != owner.standing->names.end()) other.name = name->second;
    AddTo(node, Add(owner.host, std::move(other)));
  }

  void AddTo(size_t node, size_t to) {
    std::vector<size_t>& edges = graph_.nodes[node].waits_for;
    if (node != to && std::find(edges.begin(), edges.end(), to) == edges.end()) {
      edges.push_back(to);
    }
  }

  void FindRings() {
    std::vector<const std::vector<size_t>*> edges;
    for (const StandNode& node : graph_.nodes) edges.push_back(&node.waits_for);
    graph_.components = FindComponents(edges);
    graph_.component_of.resize(graph_.nodes.size());
    for (size_t id = 0; id < graph_.components.size(); ++id) {
      for (const size_t node : graph_.components[id]) graph_.component_of[node] = id;
    }
  }

  struct Holder {
    size_t node = 0;
    std::string path;
    bool is_one = false;  // no other rank of the host holds a lock
  };

  const JobState& job_;
  const std::vector<int32_t>& ranks_;
  StandGraph graph_;
  std::map<Place, size_t> nodes_;
  std::map<std::string, Holder> holders_;  // by host
};

}  // namespace

bool IsIdlePlace(const StackPlace& place) {
  return !FindIdleLoop(place.functions).empty() || StandsIn(place).kind == StandKind::kIdle;
}

StandGraph BuildStandGraph(const JobState& job, const std::vector<int32_t>& ranks) {
  return Builder(job, ranks).Build();
}

}  // namespace rollcall
