// SPDX-License-Identifier: Apache-2.0
#include "daemon/diagnosis/standing/stand_scene.h"

#include <algorithm>

#include "absl/strings/match.h"

namespace rollcall {
namespace {

// Of a component: stacks choose the waits, and the rest is not named.
constexpr size_t kMostEnds = 32;

bool WaitsFor(const StandNode& node, size_t other) {
  return std::find(node.waits_for.begin(), node.waits_for.end(), other) != node.waits_for.end();
}

}  // namespace

StandScene::StandScene(const JobState& job, const StandingRanks& ranks, bool is_look)
    : job_(job),
      ranks_(ranks),
      is_look_(is_look),
      graph_(BuildStandGraph(job, ranks.processes, is_look)) {
  for (size_t i = 0; i < Count(); ++i) rank_of_[ranks.processes[i]] = i;
  FindOwners();
  FindEnds();
}

void StandScene::FindOwners() {
  for (const std::vector<size_t>& component : graph_.components) {
    std::set<int32_t> owners;
    for (const size_t node : component) owners.insert(graph_.nodes[node].process);
    owners_.push_back(owners.size() == 1 ? *owners.begin() : kSeveralRanks);
  }
}

// For each component those at the end of its waits, that of the newest wait at the back; itself, if
// it waits for no other. A component comes after those that it waits for.
std::vector<std::vector<size_t>> StandScene::FindEndsOfComponents() const {
  std::vector<std::vector<size_t>> ends_of(graph_.components.size());
  for (size_t id = 0; id < ends_of.size(); ++id) {
    std::set<size_t> known;
    size_t last = id;
    for (const size_t node : graph_.components[id]) {
      for (const size_t to : graph_.nodes[node].waits_for) {
        const size_t other = graph_.component_of[to];
        if (other == id) continue;
        for (const size_t end : ends_of[other]) {
          if (known.size() < kMostEnds) known.insert(end);
        }
        last = ends_of[other].back();
      }
    }
    known.erase(last);
    ends_of[id].assign(known.begin(), known.end());
    ends_of[id].push_back(last);
  }
  return ends_of;
}

void StandScene::FindEnds() {
  const std::vector<std::vector<size_t>> ends_of = FindEndsOfComponents();
  for (size_t i = 0; i < Count(); ++i) {
    const size_t own = graph_.component_of[i];
    const size_t last = ends_of[own].back();
    ends_.push_back({last, last != own && owners_[last] != Rank(i).process});
    if (ends_.back().is_of_other) awaited_.insert(last);
    // Of most processes that are not ranks nothing is known.
    for (const size_t end : ends_of[own]) {
      if (end != own && owners_[end] != Rank(i).process && owners_[end] != kNoRank) {
        awaited_.insert(end);
      }
    }
  }
}

const Process& StandScene::ProcessAt(int32_t process) const {
  return job_.processes[static_cast<size_t>(process)];
}

const std::vector<size_t>& StandScene::ComponentOf(size_t i) const {
  return graph_.components[graph_.component_of[i]];
}

const StandNode* StandScene::FindChild(const std::vector<size_t>& nodes) const {
  const auto at = std::find_if(nodes.begin(), nodes.end(),
                               [this](size_t node) { return graph_.nodes[node].is_child; });
  return at == nodes.end() ? nullptr : &graph_.nodes[*at];
}

bool StandScene::IsBehindAServer(const std::vector<size_t>& nodes) const {
  const bool is_of_thread = std::any_of(nodes.begin(), nodes.end(), [this](size_t at) {
    const StandNode& node = graph_.nodes[at];
    return node.is_by_thread && !node.is_child && WhomItIsFor(node.in.kind) == StandFor::kOthers;
  });
  return is_of_thread && FindChild(nodes) != nullptr;
}

bool StandScene::IsAwaited(size_t i) const {
  for (size_t other = 0; other < Count(); ++other) {
    if (WaitsFor(Rank(other), i)) return true;
  }
  return false;
}

std::string StandScene::FindLock(size_t i) const {
  if (!Rank(i).on.empty()) return Rank(i).on;
  // What a rank has started may wait for the lock, too.
  for (const StandNode& other : graph_.nodes) {
    if (!other.on.empty() && WaitsFor(other, i)) return other.on;
  }
  return "";
}

std::string StandScene::BarrierOf(size_t i) const {
  return KindOf(i) == StandKind::kJaxBarrier ? Rank(i).place->key : "";
}

bool StandScene::AnySpins() const {
  for (size_t i = 0; i < Count(); ++i) {
    if (Rank(i).standing->spins) return true;
  }
  return false;
}

bool StandScene::IsAnyUnseen() const {
  int32_t world_size = 0;
  for (const int32_t process : ranks_.processes) {
    world_size = std::max(world_size, ProcessAt(process).world_size);
  }
  return static_cast<size_t>(world_size) > Count() + ranks_.ended.size() + ranks_.stopped.size();
}

bool StandScene::MayBeNoIdleness() const {
  bool may_wait = false;
  for (size_t i = 0; i < Count(); ++i) {
    if (HasAThreadIn(Rank(i), StandKind::kSleep)) return false;
    may_wait = may_wait || IsNoWaitForWork(Rank(i).in);
  }
  return may_wait;
}

bool Writes(const StandFunction& in) {
  return absl::EndsWith(in.name, "put") || absl::StrContains(in.name, "write") ||
         absl::StrContains(in.name, "send");
}

bool IsNoWaitForWork(const StandFunction& in) {
  return HasTrait(in.kind, stands::kNoWork) || Writes(in);
}

bool HasAThreadIn(const StandNode& rank, StandKind kind) {
  const std::vector<StandThread>& threads = rank.standing->threads;
  return std::any_of(threads.begin(), threads.end(),
                     [&](const StandThread& thread) { return thread.place.in.kind == kind; });
}

}  // namespace rollcall
