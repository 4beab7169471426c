// SPDX-License-Identifier: Apache-2.0
#include "daemon/diagnosis/versions.h"

#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/model/progress.h"

namespace rollcall {
namespace {

// From NCCL_VERSION_CODE: 2804 is 2.8.4, 22703 is 2.27.3.
std::string NcclVersion(int32_t code) {
  const int32_t major_unit = code < 10000 ? 1000 : 10000;
  return absl::StrCat(code / major_unit, ".", code % major_unit / 100, ".", code % 100);
}

// True if `a` is the newer process of a rank: it is alive, or it ended later.
bool IsNewer(const Process& a, const Process& b) {
  if (HasEnded(a) != HasEnded(b)) return HasEnded(b);
  if (a.ended_ns != b.ended_ns) return a.ended_ns > b.ended_ns;
  return a.start_time > b.start_time;
}

std::map<int32_t, const Process*> NewestByRank(const JobState& job) {
  std::map<int32_t, const Process*> newest;
  for (const Process& process : job.processes) {
    if (process.global_rank < 0) continue;
    const Process*& known = newest[process.global_rank];
    if (known == nullptr || IsNewer(process, *known)) known = &process;
  }
  return newest;
}

}  // namespace

std::vector<VersionInUse> VersionsInUse(const JobState& job) {
  std::map<std::pair<std::string, std::string>, std::vector<int32_t>> ranks;
  for (const auto& [rank, process] : NewestByRank(job)) {
    if (process->nccl_version > 0) {
      ranks[{"NCCL", NcclVersion(process->nccl_version)}].push_back(rank);
    }
    if (!process->library_version.empty()) {
      ranks[{"librollcall", process->library_version}].push_back(rank);
    }
  }
  std::vector<VersionInUse> versions;
  for (auto& [name, those] : ranks) versions.push_back({name.first, name.second, std::move(those)});
  return versions;
}

}  // namespace rollcall
