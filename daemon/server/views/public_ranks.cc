// SPDX-License-Identifier: Apache-2.0
#include "daemon/server/views/public_ranks.h"

#include <algorithm>

#include "daemon/model/progress.h"

namespace rollcall {

PublicRanks::PublicRanks(const JobState& job) : ranks_(job.processes.size(), -1) {
  int32_t count = 0;
  bool numbered = true;
  for (const Process& process : job.processes) {
    if (process.global_rank >= kMaxRanks) continue;
    numbered = numbered && process.global_rank >= 0;
    count = std::max({count, process.global_rank + 1, std::min(process.world_size, kMaxRanks)});
  }
  if (!numbered) count = static_cast<int32_t>(job.processes.size());
  processes_.assign(static_cast<size_t>(count), -1);
  for (size_t i = 0; i < job.processes.size(); ++i) {
    const int32_t rank = numbered ? job.processes[i].global_rank : static_cast<int32_t>(i);
    if (rank < 0 || rank >= count) continue;
    ranks_[i] = rank;
    // A rank that was started again has two processes: the newer one stands for it.
    processes_[static_cast<size_t>(rank)] = static_cast<int32_t>(i);
  }
}

int32_t PublicRanks::Of(int32_t process) const {
  return process >= 0 && static_cast<size_t>(process) < ranks_.size()
             ? ranks_[static_cast<size_t>(process)]
             : -1;
}

int32_t PublicRanks::FindProcess(int32_t rank) const {
  return rank >= 0 && rank < count() ? processes_[static_cast<size_t>(rank)] : -1;
}

}  // namespace rollcall
