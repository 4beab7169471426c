// SPDX-License-Identifier: Apache-2.0
#include "daemon/diagnosis/hosts/gpu_sharing.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/model/progress.h"
#include "daemon/words/terms.h"

namespace rollcall {

void AddGpuSharing(const JobState& job, Verdict* verdict) {
  if (verdict->cause != Cause::kBlockedBeforeStart && verdict->cause != Cause::kStalledInFlight) {
    return;
  }
  std::map<std::string, std::vector<int32_t>> ranks;
  const auto add = [&](int32_t process, int32_t rank) {
    const Process* known = FindProcess(job, process);
    if (known != nullptr && !known->gpu_sharing.empty()) ranks[known->gpu_sharing].push_back(rank);
  };
  for (const Culprit& culprit : verdict->culprits) add(culprit.process, culprit.rank);
  const size_t waiting = std::min(verdict->waiting_processes.size(), verdict->waiting_ranks.size());
  for (size_t i = 0; i < waiting; ++i) {
    add(verdict->waiting_processes[i], verdict->waiting_ranks[i]);
  }
  for (const auto& [sharing, those] : ranks) {
    verdict->evidence.push_back(absl::StrCat(
        RanksInWords(those),
        PluralForm(those.size(), " shares its GPU by ", " share their GPUs by "), sharing,
        ": work of other processes may delay ", PluralForm(those.size(), "it", "them")));
  }
}

}  // namespace rollcall
