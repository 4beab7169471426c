// SPDX-License-Identifier: Apache-2.0
#include "daemon/diagnosis/standing/stand_doubts.h"

#include <algorithm>
#include <vector>

#include "daemon/model/waits/wait_frames.h"

namespace rollcall {
namespace {

bool UsesItsGpu(const StandNode& rank) {
  return rank.in.kind == StandKind::kGpu || HasAThreadIn(rank, StandKind::kGpu);
}

// The engine of a server: its main thread waits for what the threads of the server bring, and the
// others for the work that it hands on. No rank owes another one anything.
bool MayServe(const StandScene& scene, size_t i) {
  const bool takes_work = HasTrait(scene.KindOf(i), stands::kTakesWork);
  if (!takes_work || !scene.Rank(i).standing->has_server || scene.IsAwaited(i)) return false;
  if (HasWait(scene.Rank(i).place->functions, waits::kStage)) return false;
  for (size_t other = 0; other < scene.Count(); ++other) {
    const StandFunction& in = scene.Rank(other).in;
    if (IsNoWaitForWork(in) || in.kind == StandKind::kGpu) return false;
  }
  return true;
}

bool IsAtAnInput(const StandNode& rank) {
  switch (rank.in.kind) {
    case StandKind::kSocket:
    case StandKind::kPipe:
    case StandKind::kZeroMq:
      return !Writes(rank.in);
    case StandKind::kUnknown:
      return HasWait(rank.standing->wait_channel, waits::kInputInKernel);
    default:
      return false;
  }
}

// Of no rank, or a service that the rank has started and that has called it.
bool IsOutside(const StandNode& rank, const StandNode& other) {
  if (other.process == kNoRank) return true;
  const std::vector<int32_t>& called = rank.standing->sockets.called;
  return rank.in.kind == StandKind::kSocket && other.is_child && other.child->own_session &&
         std::find(called.begin(), called.end(), other.pid) == called.end();
}

// It reads, by the descriptor that it waits at, what no process of the job writes, and has not
// asked for it.
bool ReadsFromOutside(const StandScene& scene, size_t i) {
  const StandNode& rank = scene.Rank(i);
  if (!IsAtAnInput(rank) || HasWait(rank.place->functions, waits::kAnswer)) return false;
  return std::all_of(rank.waits_for.begin(), rank.waits_for.end(),
                     [&](size_t node) { return IsOutside(rank, scene.graph().nodes[node]); });
}

// A rank that reads may hand out what it gets, and all others wait for what one hands out.
bool MayBeDriven(const StandScene& scene) {
  size_t drivers = 0;
  for (size_t i = 0; i < scene.Count(); ++i) {
    if (HasWait(scene.Rank(i).place->functions, waits::kHandedOut)) continue;
    if (!ReadsFromOutside(scene, i)) return false;
    ++drivers;
  }
  return drivers == 1 && scene.Count() > 1;
}

bool IsOutOfSight(const StandingChild& child) {
  if (WaitsForOtherHosts(child.name)) return true;
  if (child.places.empty()) return false;
  const StandPlace& place = child.places.front();
  return place.in.kind == StandKind::kPerson || place.in.kind == StandKind::kGpu || place.is_idle;
}

// A launcher or a script waits for the program that it has started.
bool WaitsForOneOutOfSight(const StandNode& rank) {
  const std::vector<StandingChild>& children = rank.standing->children;
  return rank.in.kind == StandKind::kChild &&
         std::any_of(children.begin(), children.end(), IsOutOfSight);
}

// Others wait for a server, and it waits for requests.
bool IsAnyEndIdle(const StandScene& scene) {
  const StandGraph& graph = scene.graph();
  return std::any_of(scene.awaited().begin(), scene.awaited().end(), [&](size_t end) {
    const std::vector<size_t>& nodes = graph.components[end];
    return std::all_of(nodes.begin(), nodes.end(),
                       [&](size_t node) { return graph.nodes[node].is_idle; });
  });
}

bool AllWaitForTheirGpus(const StandScene& scene) {
  for (size_t i = 0; i < scene.Count(); ++i) {
    if (scene.KindOf(i) != StandKind::kGpu) return false;
  }
  return true;
}

bool BlamesSome(const StandScene& scene, const StandBlame& blame) {
  return !blame.culprits.empty() && blame.culprits.size() < scene.Count();
}

// Ranks that all spin at one line look alike in a job that goes on. So do ranks that all wait for
// their GPUs, each at its line: the stages of a pipeline, within a long step.
bool MayBeInStep(const StandScene& scene, const StandBlame& blame) {
  if (!scene.is_look()) return false;
  if (AllWaitForTheirGpus(scene)) return !BlamesSome(scene, blame);
  return blame.shape == StandShape::kAll && scene.AnySpins();
}

// The thread that handles the requests of the others sleeps in its work: it goes on by itself.
bool MayAnswer(const StandScene& scene, const StandBlame& blame) {
  return std::any_of(blame.culprits.begin(), blame.culprits.end(), [&](size_t i) {
    return PlaceOfCulprit(scene, blame, i) != scene.Rank(i).place &&
           WaitOfCulprit(scene, blame, i).kind == StandKind::kSleep;
  });
}

// It sleeps, and holds no lock that others wait for.
bool OnlySleeps(const StandScene& scene, size_t i) {
  return scene.KindOf(i) == StandKind::kSleep && scene.FindLock(i).empty();
}

// MPI's calls are recorded, and judged by the messages. Here its ranks wait for one that only
// sleeps: a master, or a step that rests.
bool MayServeMpi(const StandScene& scene, const StandBlame& blame) {
  const size_t culprits = blame.culprits.size();
  if (scene.is_look() || culprits == 0 || culprits == scene.Count()) return false;
  if (blame.others_wait_for_them) return false;
  for (size_t i = 0; i < scene.Count(); ++i) {
    const bool is_culprit = blame.culprits.count(i) != 0;
    if (is_culprit ? !OnlySleeps(scene, i) : scene.KindOf(i) != StandKind::kMpi) return false;
  }
  return true;
}

// Both may wait for each other, and nothing shows who does: a message may be lost on its way.
bool IsOneWaitOfAll(const StandScene& scene, const StandBlame& blame) {
  const StandKind first = scene.KindOf(0);
  if (blame.shape != StandShape::kElsewhere || !HasTrait(first, stands::kDirected)) return false;
  for (size_t i = 0; i < scene.Count(); ++i) {
    if (scene.KindOf(i) != first || Writes(scene.Rank(i).in)) return false;
  }
  return true;
}

// A culprit and a process of no rank wait for each other.
bool WaitsWithAnOutsider(const StandScene& scene, const StandBlame& blame) {
  return std::any_of(blame.culprits.begin(), blame.culprits.end(), [&](size_t i) {
    const std::vector<size_t>& nodes = scene.ComponentOf(i);
    return std::any_of(nodes.begin(), nodes.end(),
                       [&](size_t node) { return scene.graph().nodes[node].process == kNoRank; });
  });
}

}  // namespace

bool MayWaitOutOfSight(const StandScene& scene) {
  for (size_t i = 0; i < scene.Count(); ++i) {
    const StandNode& rank = scene.Rank(i);
    if (rank.in.kind == StandKind::kPerson || (UsesItsGpu(rank) && !scene.is_look())) return true;
    if (rank.is_idle || MayServe(scene, i) || WaitsForOneOutOfSight(rank)) return true;
  }
  // The answer is then that it is unknown.
  return IsAnyEndIdle(scene) || (MayBeDriven(scene) && !scene.is_look());
}

bool MayGoOn(const StandScene& scene, const StandBlame& blame) {
  return MayBeInStep(scene, blame) || MayAnswer(scene, blame) || MayServeMpi(scene, blame);
}

// Unseen ranks may work, and a rank that sleeps may wake.
bool CanBeLikely(const StandScene& scene, const StandBlame& blame) {
  const std::set<size_t>& culprits = blame.culprits;
  if (blame.shape == StandShape::kEnded || blame.shape == StandShape::kStopped) return true;
  if (scene.AnySpins() || scene.IsAnyUnseen() || MayBeDriven(scene)) return false;
  if (!BlamesSome(scene, blame) || AllWaitForTheirGpus(scene)) return false;
  if (IsOneWaitOfAll(scene, blame) || WaitsWithAnOutsider(scene, blame)) return false;
  return blame.others_wait_for_them || std::none_of(culprits.begin(), culprits.end(),
                                                    [&](size_t i) { return OnlySleeps(scene, i); });
}

}  // namespace rollcall
