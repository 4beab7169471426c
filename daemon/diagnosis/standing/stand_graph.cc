// SPDX-License-Identifier: Apache-2.0
#include "daemon/diagnosis/standing/stand_graph.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "base/durations.h"
#include "daemon/model/components.h"
#include "daemon/model/waits/poll_rate.h"
#include "daemon/model/waits/wait_frames.h"

namespace rollcall {
namespace {

using Place = std::pair<std::string, int32_t>;  // host, pid

bool Sends(const StandFunction& in) { return absl::StrContains(in.name, "send"); }

// The thread in which a call of gloo is under way, for whose end the main thread asks now and then;
// nullptr if there is none.
const StandThread* FindCallAskedFor(const Standing& standing, int32_t pid) {
  const StandKind main = standing.place.in.kind;
  if (main != StandKind::kSleep && main != StandKind::kEvent) return nullptr;
  const auto call =
      std::find_if(standing.threads.begin(), standing.threads.end(), [](const StandThread& thread) {
        return absl::StrContains(thread.place.functions, kGlooWaits);
      });
  return call == standing.threads.end() || !Polls(standing, pid) ? nullptr : &*call;
}

// Where the main thread waits for another one, that one's wait is more telling.
StandFunction WaitOf(const std::vector<StandPlace>& places) {
  const StandFunction& main = places.front().in;
  if (main.kind != StandKind::kThread && main.kind != StandKind::kFuture) return main;
  for (const StandPlace& place : places) {
    if (!place.other_end.empty()) return place.in;
  }
  return main;
}

class Builder {
 public:
  Builder(const JobState& job, const std::vector<int32_t>& ranks, bool is_look)
      : job_(job), ranks_(ranks), is_look_(is_look) {}

  StandGraph Build() {
    for (const int32_t process : ranks_) AddRank(process);
    for (size_t i = 0; i < ranks_.size(); ++i) AddChildren(i);
    for (size_t i = 0; i < ranks_.size(); ++i) AddOthers(i);
    FindHolders();
    for (size_t i = 0; i < ranks_.size(); ++i) AddEdges(i);
    DropAnswersToWaiters();
    FreeServices();
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
    node.place = &standing.place;
    node.in = WaitOfMain(standing);
    const StandThread* call = is_look_ ? FindCallAskedFor(standing, known.pid) : nullptr;
    if (call != nullptr) node.in = call->place.in;
    int32_t tid = known.pid;
    if (standing.place.is_idle) {
      const StandThread* handler = FindHandler(standing);
      node.is_idle = handler == nullptr;
      if (handler != nullptr) {
        node.place = &handler->place;
        node.in = handler->place.in;
        tid = static_cast<int32_t>(handler->tid);
      }
    }
    // Requests may come from outside of the job.
    const bool receives = node.in.kind == StandKind::kZeroMq && !Sends(node.in);
    node.is_idle = node.is_idle || (receives && standing.sockets.listens);
    node.at = node.place->at;
    node.inside = node.place->inside;
    node.is_seen = true;
    node.standing = &standing;
    const auto mark = standing.newest.threads.find({known.pid, tid});
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
      StandNode node = NodeOf(child);
      node.process = ranks_[rank];
      node.rank = known.global_rank;
      node.is_child = true;
      Add(known.host, std::move(node));
    }
  }

  // One that a rank sees may be another one's child.
  void AddOthers(size_t rank) {
    const Process& known = At(ranks_[rank]);
    for (const StandingChild& other : known.standing->others) {
      const auto at = nodes_.find({known.host, other.pid});
      if (at == nodes_.end()) Add(known.host, NodeOf(other));
    }
  }

  static StandNode NodeOf(const StandingChild& child) {
    StandNode node;
    node.pid = child.pid;
    node.name = child.name;
    node.child = &child;
    node.is_seen = !child.places.empty();
    if (child.places.empty()) return node;
    const StandPlace* handler = FindHandler(child);
    node.place = handler == nullptr ? &child.places.front() : handler;
    node.in = handler == nullptr ? WaitOf(child.places) : handler->in;
    node.at = node.place->at;
    node.is_idle = node.place->is_idle;
    return node;
  }

  size_t Add(const std::string& host, StandNode node) {
    const auto [at, is_new] = nodes_.emplace(Place(host, node.pid), graph_.nodes.size());
    if (is_new) graph_.nodes.push_back(std::move(node));
    return at->second;
  }

  void AddEdges(size_t rank) {
    const Process& known = At(ranks_[rank]);
    const Standing& standing = *known.standing;
    if (!AddSockets(known, rank)) {
      AddPlaces(known, rank, *graph_.nodes[rank].place, OtherPlaces(standing.threads));
    }
    AddLock(known, rank);
    if (graph_.nodes[rank].waits_for.empty()) AddChildrenOf(known, rank, known.pid);
    for (const auto* processes : {&standing.children, &standing.others}) {
      for (const StandingChild& child : *processes) {
        const size_t at = nodes_[{known.host, child.pid}];
        if (graph_.nodes[at].child != &child || child.places.empty()) continue;
        AddPlacesOf(child, known, at);
        AddHolders(known, at, child.pid);
        if (graph_.nodes[at].waits_for.empty()) AddChildrenOf(known, at, child.pid);
      }
    }
  }

  // Threads of a server that are beside the one that handles a request wait for further ones.
  void AddPlacesOf(const StandingChild& child, const Process& owner, size_t node) {
    const StandPlace* place = graph_.nodes[node].place;
    const auto& all = child.places;
    const bool is_main = place == &all.front();
    AddPlaces(
        owner, node, *place,
        is_main ? std::vector<StandPlace>(all.begin() + 1, all.end()) : std::vector<StandPlace>());
  }

  static std::vector<StandPlace> OtherPlaces(const std::vector<StandThread>& threads) {
    std::vector<StandPlace> places;
    for (const StandThread& thread : threads) places.push_back(thread.place);
    return places;
  }

  // What the main thread waits for; if there is no other, what the threads wait for that it may
  // wait for: those of a server too, which bring what it waits for.
  void AddPlaces(const Process& owner, size_t node, const StackPlace& main,
                 const std::vector<StandPlace>& others) {
    // The process with the server of a store does not set its keys. In its first call a group asks
    // for the id of a communicator.
    if (graph_.nodes[node].in.kind == StandKind::kStore || IsAtAStore(main.functions)) return;
    AddEnds(owner, node, main);
    if (!graph_.nodes[node].waits_for.empty() || graph_.nodes[node].is_idle) return;
    for (const StackPlace& place : others) AddEnds(owner, node, place);
    graph_.nodes[node].is_by_thread = !graph_.nodes[node].waits_for.empty();
  }

  void AddEnds(const Process& owner, size_t node, const StackPlace& place) {
    for (const int32_t pid : place.other_end) {
      if (!IsACopy(owner, graph_.nodes[node].pid, place, pid)) AddEdge(owner, node, pid);
    }
  }

  // A worker without work has what its parent had open when it was started, and uses none of it.
  bool IsACopy(const Process& owner, int32_t waiting, const StackPlace& place, int32_t pid) const {
    const auto at = nodes_.find({owner.host, pid});
    if (place.end != EndKind::kSocket || at == nodes_.end()) return false;
    const StandNode& other = graph_.nodes[at->second];
    if (!other.is_child || !other.is_idle) return false;
    const int32_t parent = other.child->parent;
    const auto& pids = place.other_end;
    return parent == waiting || std::find(pids.begin(), pids.end(), parent) != pids.end();
  }

  // Whether a library waits at the sockets of the rank for its main thread, and not that thread
  // itself.
  bool AddSockets(const Process& owner, size_t rank) {
    const StandingSockets& sockets = owner.standing->sockets;
    switch (graph_.nodes[rank].in.kind) {
      case StandKind::kZeroMq:
        for (const int32_t pid : sockets.with) AddEdge(owner, rank, pid);
        return sockets.known;
      case StandKind::kGrpc:
        for (const int32_t pid : sockets.called) AddEdge(owner, rank, pid);
        return true;
      case StandKind::kRay:
        // Each is connected with processes of Ray itself, too.
        for (const int32_t pid : sockets.called) {
          if (nodes_.count({owner.host, pid}) != 0) AddEdge(owner, rank, pid);
        }
        return true;
      default:
        return false;
    }
  }

  // Of two at one connection of ZeroMQ, one that sends does not wait for one that receives: it
  // waits for somebody else.
  void DropAnswersToWaiters() {
    for (StandNode& node : graph_.nodes) {
      if (node.in.kind != StandKind::kZeroMq || !Sends(node.in)) continue;
      const auto receives = [this](size_t to) {
        const StandFunction& in = graph_.nodes[to].in;
        return in.kind == StandKind::kZeroMq && !Sends(in);
      };
      auto& edges = node.waits_for;
      edges.erase(std::remove_if(edges.begin(), edges.end(), receives), edges.end());
    }
  }

  // A process with a session of its own, for which several ranks wait, is not a part of the one
  // that has started it.
  void FreeServices() {
    std::map<size_t, std::set<int32_t>> waiting;
    for (const StandNode& node : graph_.nodes) {
      for (const size_t to : node.waits_for) {
        if (node.rank >= 0) waiting[to].insert(node.rank);
      }
    }
    for (const auto& [at, ranks] : waiting) {
      StandNode& node = graph_.nodes[at];
      if (!node.is_child || !node.child->own_session || ranks.size() < 2) continue;
      node.is_child = false;
      node.process = node.rank = -1;
    }
  }

  void AddChildrenOf(const Process& owner, size_t node, int32_t pid) {
    if (!HasTrait(graph_.nodes[node].in.kind, stands::kForChildren)) return;
    for (const StandingChild& child : owner.standing->children) {
      const auto at = nodes_.find({owner.host, child.pid});
      if (child.parent != pid || child.places.empty() || at == nodes_.end()) continue;
      if (graph_.nodes[at->second].is_idle) continue;
      AddTo(node, at->second);
    }
  }

  void AddLock(const Process& owner, size_t node) {
    AddHolders(owner, node, 0);
    AddOnlyHolder(owner, node);
  }

  // `child`: the process of the node, as in FileLockSeen.
  void AddHolders(const Process& owner, size_t node, int32_t child) {
    const int32_t pid = graph_.nodes[node].pid;
    for (const FileLockSeen& lock : owner.standing->locks) {
      if (!lock.waits || lock.child != child) continue;
      graph_.nodes[node].on = lock.path;
      if (lock.holder > 0 && lock.holder != pid) AddEdge(owner, node, lock.holder);
      if (lock.holder == 0) AddHoldersOf(lock, owner, node);
    }
  }

  // One that polls for a lock is in no list of the kernel: the only other holder has it.
  void AddOnlyHolder(const Process& owner, size_t node) {
    const StandKind kind = graph_.nodes[node].in.kind;
    if (kind != StandKind::kFileLock && kind != StandKind::kDatabase) return;
    const auto held = holders_.find(owner.host);
    if (!graph_.nodes[node].waits_for.empty() || held == holders_.end()) return;
    if (!held->second.is_one) return;
    graph_.nodes[node].on = held->second.path;
    AddTo(node, held->second.node);
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
  const bool is_look_;
  StandGraph graph_;
  std::map<Place, size_t> nodes_;
  std::map<std::string, Holder> holders_;  // by host
};

}  // namespace

StandGraph BuildStandGraph(const JobState& job, const std::vector<int32_t>& ranks, bool is_look) {
  return Builder(job, ranks, is_look).Build();
}

bool Polls(const Standing& standing, int32_t pid) {
  const std::pair<int32_t, int32_t> main = {pid, pid};
  const auto before = standing.first.threads.find(main), now = standing.newest.threads.find(main);
  if (before == standing.first.threads.end() || now == standing.newest.threads.end()) return false;
  if (before->second.switches == 0 || now->second.switches == 0) return false;  // unknown
  const auto wakes = static_cast<double>(now->second.switches - before->second.switches);
  const auto ns = static_cast<double>(standing.newest.at_ns - standing.first.at_ns);
  return wakes * kSecond >= kLeastPollsASecond * ns;
}

}  // namespace rollcall
