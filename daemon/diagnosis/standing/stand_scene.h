// SPDX-License-Identifier: Apache-2.0
// The ranks of a job that stands, and where their waits lead to. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "daemon/diagnosis/standing/stand_graph.h"
#include "daemon/diagnosis/standing/standing_ranks.h"
#include "daemon/model/job_state.h"

namespace rollcall {

// The owner of the nodes of a component, if not one rank.
inline constexpr int32_t kNoRank = -1;
inline constexpr int32_t kSeveralRanks = -2;

// Where a rank's wait leads to.
struct StandEnd {
  size_t component = 0;      // of the nodes that wait only for each other
  bool is_of_other = false;  // of other ranks
};

// Ranks are indices into StandingRanks::processes, nodes and components those of the graph.
class StandScene {
 public:
  // Both must outlive it.
  StandScene(const JobState& job, const StandingRanks& ranks, bool is_look);

  const JobState& job() const { return job_; }
  const StandingRanks& ranks() const { return ranks_; }
  bool is_look() const { return is_look_; }  // Limits::is_look
  const StandGraph& graph() const { return graph_; }
  // Components of other ranks, where waits end.
  const std::set<size_t>& awaited() const { return awaited_; }

  size_t Count() const { return ranks_.processes.size(); }
  const StandNode& Rank(size_t i) const { return graph_.nodes[i]; }
  StandKind KindOf(size_t i) const { return Rank(i).in.kind; }
  const Process& ProcessAt(int32_t process) const;
  size_t RankOf(int32_t process) const { return rank_of_.at(process); }
  const StandEnd& EndOf(size_t i) const { return ends_[i]; }
  // The process that has all nodes of the component, or one of the constants above.
  int32_t OwnerOf(size_t component) const { return owners_[component]; }
  const std::vector<size_t>& ComponentOf(size_t i) const;

  // Returns the child of a rank among the nodes, or nullptr.
  const StandNode* FindChild(const std::vector<size_t>& nodes) const;
  // A rank waits for what a process brings that it has started for all, and by another thread for
  // that process.
  bool IsBehindAServer(const std::vector<size_t>& nodes) const;
  bool IsAwaited(size_t i) const;
  // The file that the rank waits to lock, or that others wait to lock and it holds, or empty.
  std::string FindLock(size_t i) const;
  // The name of JAX's barrier at which the rank waits; empty if it waits elsewhere, or unknown.
  std::string BarrierOf(size_t i) const;
  bool AnySpins() const;
  // Ranks that no agent sees.
  bool IsAnyUnseen() const;
  // A rank waits for something else than work, and no rank sleeps: ranks that all read what another
  // process brings may be without work, and what sleeps may wake.
  bool MayBeNoIdleness() const;

 private:
  void FindOwners();
  std::vector<std::vector<size_t>> FindEndsOfComponents() const;
  void FindEnds();

  const JobState& job_;
  const StandingRanks& ranks_;
  const bool is_look_;
  const StandGraph graph_;
  std::map<int32_t, size_t> rank_of_;  // by process
  std::vector<int32_t> owners_;        // by component
  std::vector<StandEnd> ends_;         // by rank
  std::set<size_t> awaited_;
};

// It waits until somebody takes what it puts into a queue, a pipe or a socket.
bool Writes(const StandFunction& in);
bool IsNoWaitForWork(const StandFunction& in);
// Looks at threads beside its main one.
bool HasAThreadIn(const StandNode& rank, StandKind kind);

}  // namespace rollcall
