// SPDX-License-Identifier: Apache-2.0
#include "daemon/diagnosis/standing/stand_blame.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "daemon/diagnosis/standing/stand_departure.h"
#include "daemon/model/waits/poll_rate.h"

namespace rollcall {
namespace {

using Blame = std::optional<StandBlame>;

std::map<uint64_t, std::vector<size_t>> ByPosition(const StandScene& scene) {
  std::map<uint64_t, std::vector<size_t>> groups;
  for (size_t i = 0; i < scene.Count(); ++i) groups[scene.Rank(i).position].push_back(i);
  return groups;
}

// The ranks that are not among these.
std::set<size_t> AllBut(const StandScene& scene, const std::vector<size_t>& ranks) {
  const std::set<size_t> left_out(ranks.begin(), ranks.end());
  std::set<size_t> others;
  for (size_t i = 0; i < scene.Count(); ++i) {
    if (left_out.count(i) == 0) others.insert(i);
  }
  return others;
}

bool AreAtOneLine(const StandScene& scene, const std::vector<size_t>& ranks) {
  return std::all_of(ranks.begin(), ranks.end(), [&](size_t i) {
    return !scene.Rank(i).at.empty() && scene.Rank(i).at == scene.Rank(ranks.front()).at;
  });
}

bool AreAllAtOneLine(const StandScene& scene) {
  std::vector<size_t> all(scene.Count());
  std::iota(all.begin(), all.end(), 0);
  return AreAtOneLine(scene, all);
}

bool WaitsForOthers(const StandScene& scene, size_t i) {
  const StandKind kind = scene.KindOf(i);
  if (kind == StandKind::kGpu) return scene.is_look();
  return WhomItIsFor(kind) == StandFor::kOthers && kind != StandKind::kPipe;
}

bool AnyWaitsForOthers(const StandScene& scene) {
  for (size_t i = 0; i < scene.Count(); ++i) {
    if (WaitsForOthers(scene, i)) return true;
  }
  return false;
}

// The reader of a socket learns of the exit of the other end, and any process may send a signal.
bool AnyMayWaitForTheEnded(const StandScene& scene) {
  for (size_t i = 0; i < scene.Count(); ++i) {
    const StandKind kind = scene.KindOf(i);
    const bool is_told = kind == StandKind::kSocket || kind == StandKind::kSignal;
    if (WaitsForOthers(scene, i) && !is_told) return true;
  }
  return false;
}

// In its main thread, or in one that makes its calls.
bool HasCallOfGloo(const StandNode& rank) {
  const auto is_in_gloo = [](const StandPlace& place) {
    return absl::StrContains(place.functions, kGlooWaits);
  };
  const std::vector<StandThread>& threads = rank.standing->threads;
  return is_in_gloo(rank.standing->place) ||
         std::any_of(threads.begin(), threads.end(),
                     [&](const StandThread& thread) { return is_in_gloo(thread.place); });
}

Blame TellAll(const StandScene& scene) {
  if (!scene.MayBeNoIdleness()) return std::nullopt;
  return StandBlame{StandShape::kAll};
}

// The proxies of a manager have functions that it has made from a text.
bool PutsByAManager(const StandNode& rank) {
  return rank.in.kind == StandKind::kManager &&
         absl::StrContains(rank.place->functions, " <string>.put ");
}

// Several ranks write at one line and no rank reads what they write: the one that should read
// writes, too, or waits by a manager for what comes of it.
Blame TellWriters(const StandScene& scene) {
  std::vector<size_t> writers;
  for (size_t i = 0; i < scene.Count(); ++i) {
    if (Writes(scene.Rank(i).in) || PutsByAManager(scene.Rank(i))) {
      writers.push_back(i);
    } else if (scene.KindOf(i) != StandKind::kManager) {
      return std::nullopt;
    }
  }
  const size_t least = std::min<size_t>(2, scene.Count());
  if (writers.size() < least || !AreAtOneLine(scene, writers)) return std::nullopt;
  return TellAll(scene);
}

Blame BlameStopped(const StandScene& scene) {
  if (scene.ranks().stopped.empty()) return std::nullopt;
  return StandBlame{StandShape::kStopped};
}

// One rank waits to send by ZeroMQ. Of the others, some have no connection at all.
Blame BlameUnconnected(const StandScene& scene) {
  bool any_sends = false;
  StandBlame blame{StandShape::kElsewhere};
  for (size_t i = 0; i < scene.Count(); ++i) {
    if (scene.KindOf(i) != StandKind::kZeroMq) return std::nullopt;
    any_sends = any_sends || Writes(scene.Rank(i).in);
    if (!scene.Rank(i).standing->sockets.known) blame.culprits.insert(i);
  }
  const size_t unconnected = blame.culprits.size();
  if (!any_sends || unconnected == 0 || 2 * unconnected > scene.Count()) return std::nullopt;
  return blame;
}

// All wait at barriers of JAX, and most at one of them: the others count differently. A rank that
// has ended, or is unseen, may be the one that a barrier lacks.
Blame BlameOtherBarrier(const StandScene& scene) {
  if (!scene.ranks().ended.empty() || scene.IsAnyUnseen()) return std::nullopt;
  std::map<std::string, std::vector<size_t>> by_name;
  for (size_t i = 0; i < scene.Count(); ++i) {
    const std::string name = scene.BarrierOf(i);
    if (name.empty()) return std::nullopt;
    by_name[name].push_back(i);
  }
  if (by_name.size() < 2) return std::nullopt;
  for (const auto& [name, ranks] : by_name) {
    if (2 * ranks.size() <= scene.Count()) continue;
    return StandBlame{StandShape::kElsewhere, AllBut(scene, ranks)};
  }
  return std::nullopt;
}

// A service that has been started beside the ranks, and that none of its threads lets go on.
bool IsAStuckService(const StandScene& scene, size_t end) {
  const std::vector<size_t>& nodes = scene.graph().components[end];
  if (nodes.size() != 1 || scene.graph().nodes[nodes.front()].child == nullptr) return false;
  const StandingChild& service = *scene.graph().nodes[nodes.front()].child;
  return !service.places.empty() && !service.hides_a_wait &&
         std::all_of(service.places.begin(), service.places.end(), [](const StandPlace& place) {
           const StandKind kind = place.in.kind;
           return WhomItIsFor(kind) == StandFor::kOwn && kind != StandKind::kSleep &&
                  !place.is_idle;
         });
}

// All wait for one process that is not a rank.
Blame TellService(const StandScene& scene) {
  const size_t end = scene.EndOf(0).component;
  for (size_t i = 1; i < scene.Count(); ++i) {
    if (scene.EndOf(i).component != end) return std::nullopt;
  }
  if (!IsAStuckService(scene, end)) return std::nullopt;
  return StandBlame{StandShape::kOutside};
}

size_t CountRanks(const StandScene& scene, const std::vector<size_t>& nodes) {
  std::set<int32_t> ranks;
  for (const size_t node : nodes) ranks.insert(scene.graph().nodes[node].process);
  ranks.erase(kNoRank);
  return ranks.size();
}

// The one for which all others of a ring wait, and no two of these for each other. The number of
// nodes, if there is none.
size_t FindHub(const StandGraph& graph, const std::vector<size_t>& nodes) {
  const size_t none = graph.nodes.size();
  if (nodes.size() < 3) return none;
  for (const size_t hub : nodes) {
    const bool is_hub = std::all_of(nodes.begin(), nodes.end(), [&](size_t node) {
      const std::vector<size_t>& to = graph.nodes[node].waits_for;
      return node == hub || (to.size() == 1 && to.front() == hub);
    });
    if (is_hub) return hub;
  }
  return none;
}

// Of those that wait for the answer of a hub, by connections of a library: who has received less
// than the others. It lacks an answer, and the hub waits for it.
std::set<size_t> FindBehind(const StandGraph& graph, const std::vector<size_t>& nodes, size_t hub) {
  std::set<size_t> behind;
  double least = 0, most = 0;
  for (const size_t node : nodes) {
    if (node == hub) continue;
    const Standing* standing = hub == graph.nodes.size() ? nullptr : graph.nodes[node].standing;
    if (standing == nullptr || standing->sockets.received_bytes == 0) return {};
    const double received = standing->sockets.received_bytes;
    if (most == 0 || received < least) behind.clear();
    if (most == 0 || received < least) least = received;
    if (received == least) behind.insert(node);
    most = std::max(most, received);
  }
  if (most == least || 2 * behind.size() > nodes.size() - 1) return {};
  return behind;
}

bool HasCalled(const StandNode& node, const StandNode& other) {
  if (node.standing == nullptr) return false;
  const std::vector<int32_t>& called = node.standing->sockets.called;
  return std::find(called.begin(), called.end(), other.pid) != called.end();
}

// Of those that wait for the answer of a hub: who has called it, and the hub has called it, too.
// Each may answer only after its own question. Empty if all have.
std::set<size_t> FindAskedByHub(const StandGraph& graph, const std::vector<size_t>& nodes,
                                size_t hub) {
  std::set<size_t> asked;
  for (const size_t node : nodes) {
    const StandNode& one = graph.nodes[node];
    if (node != hub && HasCalled(one, graph.nodes[hub]) && HasCalled(graph.nodes[hub], one)) {
      asked.insert(node);
    }
  }
  return asked.size() + 1 == nodes.size() ? std::set<size_t>() : asked;
}

StandShape ShapeOf(const StandScene& scene, size_t component, bool has_one_hub) {
  const std::vector<size_t>& nodes = scene.graph().components[component];
  const bool is_of_several = scene.OwnerOf(component) == kSeveralRanks;
  if (is_of_several && CountRanks(scene, nodes) > 1) {
    return has_one_hub ? StandShape::kHub : StandShape::kRing;
  }
  if (scene.IsBehindAServer(nodes)) return StandShape::kOwnServer;
  const bool has_child =
      !is_of_several && (nodes.size() > 1 || scene.graph().nodes[nodes.front()].is_child);
  return has_child ? StandShape::kChild : StandShape::kLast;
}

void AddComponent(const StandScene& scene, size_t id, StandBlame* blame) {
  const StandGraph& graph = scene.graph();
  const std::vector<size_t>& nodes = graph.components[id];
  const size_t hub = FindHub(graph, nodes);
  const bool has_hub = hub != graph.nodes.size();
  std::set<size_t> behind;
  if (has_hub) behind = FindAskedByHub(graph, nodes, hub);
  if (behind.empty()) behind = FindBehind(graph, nodes, hub);
  for (const size_t node : nodes) {
    if (has_hub && node != hub && behind.count(node) == 0) continue;
    const int32_t process = graph.nodes[node].process;
    if (process >= 0) blame->culprits.insert(scene.RankOf(process));
  }
  blame->shape = ShapeOf(scene, id, has_hub && behind.empty());
}

// Those for which others wait, and rings of several ranks, for which no other need wait.
std::set<size_t> FindLastComponents(const StandScene& scene) {
  std::set<size_t> ends = scene.awaited();
  for (size_t i = 0; i < scene.Count(); ++i) {
    const size_t end = scene.EndOf(i).component;
    if (scene.OwnerOf(end) == kSeveralRanks) ends.insert(end);
  }
  return ends;
}

// Ranks that others wait for, by the pipes, sockets and locks that they wait at.
Blame BlameOneEnd(const StandScene& scene) {
  const std::set<size_t>& awaited = scene.awaited();
  // Of most processes that are not ranks, and no rank's children, nothing is known.
  const bool is_outside = std::any_of(awaited.begin(), awaited.end(),
                                      [&](size_t end) { return scene.OwnerOf(end) == kNoRank; });
  if (is_outside) return TellService(scene);
  const std::set<size_t> ends = FindLastComponents(scene);
  if (ends.empty()) return std::nullopt;
  StandBlame blame;
  for (const size_t id : ends) AddComponent(scene, id, &blame);
  blame.others_wait_for_them = !awaited.empty();
  const bool are_all = blame.culprits.size() == scene.Count() && AreAllAtOneLine(scene);
  if (are_all || blame.culprits.empty()) return TellAll(scene);
  return blame;
}

bool HaveAllEndedWell(const StandScene& scene) {
  const std::vector<int32_t>& ended = scene.ranks().ended;
  return std::all_of(ended.begin(), ended.end(), [&](int32_t process) {
    const Process& known = scene.ProcessAt(process);
    return known.liveness == Liveness::kExited && known.exit_code <= 0;
  });
}

bool HasAnyDied(const StandScene& scene) {
  const std::vector<int32_t>& ended = scene.ranks().ended;
  return std::any_of(ended.begin(), ended.end(), [&](int32_t process) {
    return scene.ProcessAt(process).liveness == Liveness::kDied;
  });
}

// All that wait for others wait in calls of gloo, which fail where a member has ended, and another
// rank stands by itself.
bool AreWaitersToldOfEnds(const StandScene& scene) {
  bool any_by_itself = false, any_in_gloo = false;
  for (size_t i = 0; i < scene.Count(); ++i) {
    const StandKind kind = scene.KindOf(i);
    const bool is_own = WhomItIsFor(kind) == StandFor::kOwn && kind != StandKind::kSleep;
    any_by_itself = any_by_itself || is_own;
    if (!WaitsForOthers(scene, i)) continue;
    if (!HasCallOfGloo(scene.Rank(i))) return false;
    any_in_gloo = true;
  }
  return any_by_itself && any_in_gloo;
}

Blame BlameEnded(const StandScene& scene) {
  if (scene.ranks().ended.empty()) return std::nullopt;
  if (scene.is_look() && !HasAnyDied(scene) && AreWaitersToldOfEnds(scene)) return std::nullopt;
  // Those that are left may serve others now, or wait for what they have started themselves.
  if (HaveAllEndedWell(scene) && !AnyMayWaitForTheEnded(scene)) return std::nullopt;
  return StandBlame{StandShape::kEnded};
}

// Each waits for a holder, wherever in the program it asks for the lock.
bool AllWaitForLocksOfFiles(const StandScene& scene) {
  for (size_t i = 0; i < scene.Count(); ++i) {
    if (scene.KindOf(i) != StandKind::kFileLock) return false;
  }
  return true;
}

// Most wait at one place: the others are elsewhere.
Blame BlameMinority(const StandScene& scene) {
  const auto groups = ByPosition(scene);
  if (groups.size() < 2 || AllWaitForLocksOfFiles(scene)) return std::nullopt;
  for (const auto& [position, ranks] : groups) {
    if (2 * ranks.size() <= scene.Count() || position == 0) continue;
    // Those that stand by themselves hold up the others, however many they are.
    const bool is_own = WhomItIsFor(scene.KindOf(ranks.front())) == StandFor::kOwn;
    if (is_own && AnyWaitsForOthers(scene)) break;
    return StandBlame{StandShape::kElsewhere, AllBut(scene, ranks)};
  }
  return std::nullopt;
}

// No line has most of them, but one side of a function of the program has. Of a job that was
// started without the library, only this shows who has left a loop.
Blame BlameDeparted(const StandScene& scene) {
  if (!scene.is_look() || AllWaitForLocksOfFiles(scene)) return std::nullopt;
  std::set<size_t> departed = FindDeparted(scene);
  if (departed.empty()) return std::nullopt;
  return StandBlame{StandShape::kElsewhere, std::move(departed)};
}

// It and what it has started wait for each other.
bool IsInARingOfItsOwn(const StandScene& scene, size_t i) {
  const size_t end = scene.EndOf(i).component;
  return scene.OwnerOf(end) == scene.Rank(i).process && scene.graph().components[end].size() > 1;
}

// Blames the nodes that wait for no other.
Blame BlameOwn(const StandScene& scene) {
  StandBlame blame{StandShape::kElsewhere};
  for (size_t i = 0; i < scene.Count(); ++i) {
    const bool is_ring = IsInARingOfItsOwn(scene, i);
    if (is_ring) blame.shape = StandShape::kChild;
    if (is_ring || WhomItIsFor(scene.KindOf(i)) == StandFor::kOwn) blame.culprits.insert(i);
  }
  const std::set<size_t>& culprits = blame.culprits;
  if (culprits.size() == 1 && scene.IsBehindAServer(scene.ComponentOf(*culprits.begin()))) {
    blame.shape = StandShape::kOwnServer;
  }
  if (!culprits.empty() && culprits.size() < scene.Count()) return blame;
  if (ByPosition(scene).size() < 2 || !scene.MayBeNoIdleness()) return std::nullopt;
  blame.culprits = AllBut(scene, {});  // nothing decides
  return blame;
}

bool AnyAsksByGrpc(const StandScene& scene) {
  for (size_t i = 0; i < scene.Count(); ++i) {
    if (scene.EndOf(i).is_of_other && scene.KindOf(i) == StandKind::kGrpc) return true;
  }
  return false;
}

// All wait for a message of gloo, and nobody sends one.
Blame BlameReceivers(const StandScene& scene) {
  if (!scene.is_look() || scene.IsAnyUnseen() || !scene.ranks().ended.empty()) return std::nullopt;
  StandBlame blame{StandShape::kRing};
  for (size_t i = 0; i < scene.Count(); ++i) {
    const StandPlace* place = scene.Rank(i).place;
    const bool receives = absl::StrContains(place->functions, "ProcessGroupGloo::RecvWork::wait");
    if (!receives || absl::StrContains(place->functions, "monitoredBarrier")) return std::nullopt;
    blame.culprits.insert(i);
  }
  return blame;
}

// Each goes on by itself, at whatever line.
bool DoAllSleep(const StandScene& scene) {
  for (size_t i = 0; i < scene.Count(); ++i) {
    if (scene.KindOf(i) != StandKind::kSleep) return false;
  }
  return true;
}

// All sleep. A look is taken because somebody thinks that they hang: it tells where all of them
// look again and again for something, such as a file.
Blame TellPolling(const StandScene& scene) {
  if (!scene.is_look()) return std::nullopt;
  for (size_t i = 0; i < scene.Count(); ++i) {
    if (!Polls(*scene.Rank(i).standing, scene.Rank(i).pid)) return std::nullopt;
  }
  if (Blame minority = BlameMinority(scene)) return minority;
  return StandBlame{StandShape::kAll};
}

}  // namespace

std::optional<StandBlame> BlameRanks(const StandScene& scene) {
  if (DoAllSleep(scene) && scene.ranks().stopped.empty() && scene.ranks().ended.empty()) {
    return TellPolling(scene);
  }
  for (const auto rule :
       {TellWriters, BlameReceivers, BlameStopped, BlameOtherBarrier, BlameUnconnected, BlameOneEnd,
        BlameEnded, BlameMinority, BlameDeparted, BlameOwn, TellAll}) {
    if (Blame blame = rule(scene)) return blame;
  }
  return std::nullopt;
}

const StandPlace* PlaceOfCulprit(const StandScene& scene, const StandBlame& blame, size_t i) {
  if (blame.shape == StandShape::kOwnServer) {
    const StandNode* server = scene.FindChild(scene.ComponentOf(i));
    return server == nullptr ? scene.Rank(i).place : server->place;
  }
  const bool answers = blame.shape == StandShape::kLast && AnyAsksByGrpc(scene);
  const StandThread* handler = answers ? FindHandler(*scene.Rank(i).standing) : nullptr;
  return handler == nullptr ? scene.Rank(i).place : &handler->place;
}

StandFunction WaitOfCulprit(const StandScene& scene, const StandBlame& blame, size_t i) {
  if (blame.shape != StandShape::kLast) return scene.Rank(i).in;
  const StandPlace* place = PlaceOfCulprit(scene, blame, i);
  return place == scene.Rank(i).place ? scene.Rank(i).in : place->in;
}

}  // namespace rollcall
