// SPDX-License-Identifier: Apache-2.0
// Finds the processes of ranks that never joined a communicator. There is no report on such
// a rank of the communicator, but there may be a report on its process.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "daemon/model/job_state.h"
#include "daemon/model/rank_range.h"
#include "daemon/rules/members/alike_communicators.h"
#include "daemon/rules/members/world_ranks.h"
#include "daemon/words/rank_ranges.h"

namespace rollcall {

struct RankProcesses {
  std::map<int32_t, int32_t> processes;  // by rank
  bool guessed = false;                  // from a pattern
};

// Searches one state of a job. The first search that needs them makes tables of all processes: a
// job may have thousands of communicators that wait for a rank. One owner; `job` must outlive it
// and must not change.
class RankFinder {
 public:
  explicit RankFinder(const JobState& job) : job_(job) {}

  // The processes of `ranks`, which are not members of `comm`; leaves out ranks without a known
  // process. Uses the first source that gives a result: recorded ranks, the ranks of the parent,
  // global ranks if the communicator spans the world, the remaining processes, the ranks in the
  // name of a pair, the pattern of other communicators of the same kind, silent processes.
  RankProcesses Find(const Communicator& comm, const std::vector<RankRange>& ranks);

  // How many communicators, members and processes the searches have looked at: their cost.
  size_t looked_at() const { return looked_at_; }

 private:
  using RankMap = std::map<int32_t, int32_t>;    // rank -> process
  using Kind = std::pair<std::string, int32_t>;  // of communicators: name and size
  using Processes = std::unordered_set<int32_t>;

  // The ranks of a world that are in no communicator of a kind, as far as the search has come.
  struct Unplaced {
    WorldRanks world;
    WorldRanks::Cursor at;
    std::vector<RankedProcess> silent, heard;
  };

  const Worlds& worlds();
  CommunicatorsByName& communicators();
  const std::vector<int32_t>& WithoutRank();
  bool IsAnySilent();
  const Processes& PlacedInKind(const Communicator& comm);
  Unplaced& UnplacedIn(const Communicator& comm, int32_t world_size);
  bool FindNextUnplaced(const Processes& placed, Unplaced* unplaced);
  bool IsOneHeard(const std::vector<int32_t>& taken, const Processes& placed, Unplaced* unplaced);
  RankMap ByRest(const Communicator& comm, const RankRanges& ranks);
  RankMap ByWorld(const Communicator& comm, const RankRanges& ranks, int32_t world_size);
  RankMap ByPairName(const Communicator& comm, const RankRanges& ranks, int32_t world_size);
  RankMap BySiblings(const Communicator& comm, const RankRanges& ranks, int32_t world_size);
  RankMap BySilence(const Communicator& comm, const RankRanges& ranks, int32_t world_size);

  const JobState& job_;
  size_t looked_at_ = 0;
  // The tables.
  std::optional<Worlds> worlds_;
  std::optional<CommunicatorsByName> communicators_;
  std::optional<std::vector<int32_t>> without_rank_;
  std::optional<bool> is_any_silent_;
  std::map<Kind, Processes> placed_;
  std::map<std::pair<Kind, int32_t>, Unplaced> unplaced_;  // by kind and world size
  std::set<int32_t> searched_worlds_;                      // for silent ranks
};

// A rank without a report and its process, or neighbours without a known process.
struct UnknownMember {
  RankRange ranks;
  int32_t process = -1;
};

// All of `ranks` in order. `processes`: the known processes of ranks.
std::vector<UnknownMember> SplitByProcess(const std::vector<RankRange>& ranks,
                                          const std::map<int32_t, int32_t>& processes);

}  // namespace rollcall
