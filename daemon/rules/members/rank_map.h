// SPDX-License-Identifier: Apache-2.0
// Finds the processes of ranks that never joined a communicator. There is no report on such
// a rank of the communicator, but there may be a report on its process.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "daemon/model/job_state.h"
#include "daemon/model/rank_range.h"
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

 private:
  using RankMap = std::map<int32_t, int32_t>;    // rank -> process
  using Kind = std::pair<std::string, int32_t>;  // of communicators: name and size

  void FindBest();
  const RankMap& BestByGlobalRank(int32_t world_size);
  const std::vector<int32_t>& WithoutRank();
  bool IsAnySilent();
  const std::set<int32_t>& PlacedInKind(const Communicator& comm);
  RankMap ByWorld(const Communicator& comm, const RankRanges& ranks, int32_t world_size);
  RankMap ByPairName(const Communicator& comm, const RankRanges& ranks, int32_t world_size);
  RankMap BySiblings(const Communicator& comm, const RankRanges& ranks, int32_t world_size);
  RankMap BySilence(const Communicator& comm, const RankRanges& ranks, int32_t world_size);

  const JobState& job_;
  // The tables. By world size: the process that stands for each global rank.
  std::optional<std::map<int32_t, RankMap>> best_;
  RankMap best_of_any_;          // whatever the world size
  std::set<int32_t> completed_;  // world sizes of which best_ has all ranks
  std::optional<std::vector<int32_t>> without_rank_;
  std::optional<bool> is_any_silent_;
  std::map<Kind, std::set<int32_t>> placed_;
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
