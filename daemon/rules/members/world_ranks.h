// SPDX-License-Identifier: Apache-2.0
// The processes that stand for the ranks of a world, by the ranks and the world sizes that their
// launcher gave them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "daemon/model/job_state.h"

namespace rollcall {

// A rank and its process.
using RankedProcess = std::pair<int32_t, int32_t>;

// The world of one size: the ranks that got this WORLD_SIZE, and those below it that got another
// one. A view: it copies no ranks, so a job may claim as many sizes as it has ranks.
class WorldRanks {
 public:
  // Both by rank, each rank once. `any`: the ranks of all worlds.
  WorldRanks(const std::vector<RankedProcess>& own, const std::vector<RankedProcess>& any,
             int32_t size)
      : own_(own), any_(any), size_(size) {}

  // Returns nullopt if no process has this rank.
  std::optional<int32_t> FindProcess(int32_t rank) const;

  struct Cursor {
    size_t own = 0, any = 0;
  };
  // One after the other, by rank; nullopt if that was the last one.
  std::optional<RankedProcess> Next(Cursor* at) const;

 private:
  const std::vector<RankedProcess>& own_;
  const std::vector<RankedProcess>& any_;
  const int32_t size_;
};

// The worlds of all sizes that the processes of a job claim. `job` must not change.
class Worlds {
 public:
  explicit Worlds(const JobState& job);

  WorldRanks OfSize(int32_t size) const;
  // Only the ranks that got this WORLD_SIZE.
  WorldRanks ToldSize(int32_t size) const;

 private:
  std::map<int32_t, std::vector<RankedProcess>> by_size_;
  std::vector<RankedProcess> any_;  // empty if all got one size
  const std::vector<RankedProcess> none_;
};

}  // namespace rollcall
