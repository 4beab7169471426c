// SPDX-License-Identifier: Apache-2.0
#include "daemon/report/public_ranks.h"

#include <algorithm>

#include "daemon/model/progress.h"

namespace rollcall {

PublicRanks::PublicRanks(const JobState& job) : ranks_(job.processes.size(), -1) {
  bool numbered = true;
  for (const Process& process : job.processes) {
    if (process.global_rank >= kMaxRanks) continue;
    numbered = numbered && process.global_rank >= 0;
    count_ = std::max({count_, process.global_rank + 1, std::min(process.world_size, kMaxRanks)});
  }
  if (!numbered) count_ = static_cast<int32_t>(job.processes.size());
  for (size_t i = 0; i < job.processes.size(); ++i) {
    const int32_t rank = numbered ? job.processes[i].global_rank : static_cast<int32_t>(i);
    if (rank < 0 || rank >= count_) continue;
    ranks_[i] = rank;
    // A restarted rank has two processes. The newer one represents it.
    processes_[rank] = static_cast<int32_t>(i);
  }
}

int32_t PublicRanks::FindRank(int32_t process) const {
  return process >= 0 && static_cast<size_t>(process) < ranks_.size()
             ? ranks_[static_cast<size_t>(process)]
             : -1;
}

int32_t PublicRanks::FindProcess(int32_t rank) const {
  const auto found = processes_.find(rank);
  return found == processes_.end() ? -1 : found->second;
}

}  // namespace rollcall
