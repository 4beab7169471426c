// SPDX-License-Identifier: Apache-2.0
#include "daemon/diagnosis/versions.h"

#include <map>
#include <utility>

#include "absl/strings/str_cat.h"

namespace rollcall {
namespace {

// As NCCL_VERSION_CODE has it: 2804 is 2.8.4, 22703 is 2.27.3.
std::string NcclVersion(int32_t code) {
  const int32_t major_unit = code < 10000 ? 1000 : 10000;
  return absl::StrCat(code / major_unit, ".", code % major_unit / 100, ".", code % 100);
}

}  // namespace

std::vector<VersionInUse> VersionsInUse(const JobState& job) {
  std::map<std::pair<std::string, std::string>, std::vector<int32_t>> ranks;
  for (const Process& process : job.processes) {
    if (process.global_rank < 0) continue;
    if (process.nccl_version > 0) {
      ranks[{"NCCL", NcclVersion(process.nccl_version)}].push_back(process.global_rank);
    }
    if (!process.library_version.empty()) {
      ranks[{"librollcall", process.library_version}].push_back(process.global_rank);
    }
  }
  std::vector<VersionInUse> versions;
  for (auto& [name, those] : ranks) versions.push_back({name.first, name.second, std::move(those)});
  return versions;
}

}  // namespace rollcall
