// SPDX-License-Identifier: Apache-2.0
#include "daemon/words/communicator_names.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "daemon/model/progress.h"
#include "daemon/words/rank_ranges.h"
#include "daemon/words/terms.h"

namespace rollcall {
namespace {

constexpr char kAllRanks[] = "all ranks";
constexpr char kRanksFollow[] = " ranks: ";
constexpr char kOfAMesh[] = "mesh_";  // before the dimension of PyTorch's DeviceMesh
// PyTorch's words for a process group without description, and for one without name as well.
constexpr char kNoDescription[] = "undefined";
constexpr char kNoName[] = "group ";

int32_t LargestSize(const JobState& job) {
  int32_t size = 0;
  for (const auto& [id, comm] : job.communicators) size = std::max(size, comm.size);
  return size;
}

// Returns the number of ranks of the job; 0 if unknown. Nearly always the first process has it.
int32_t CountRanks(const JobState& job) {
  int32_t count = 0;
  for (const Process& process : job.processes) {
    if (process.holds_several) return LargestSize(job);
    if (process.world_size > 0) return process.world_size;
    count = std::max(count, process.global_rank + 1);
  }
  if (count > 0) return count;
  return LargestSize(job);
}

// Returns the ranks of the members by their numbers in the job; empty if one has no such number.
std::vector<int32_t> GlobalRanks(const JobState& job, const Communicator& comm) {
  std::vector<int32_t> ranks;
  for (const auto& [rank, member] : comm.members) {
    const Process* process = FindProcess(job, member.process);
    if (process == nullptr || process->global_rank < 0 || process->holds_several) return {};
    ranks.push_back(process->global_rank);
  }
  return ranks;
}

std::string NameByRanks(const JobState& job, const Communicator& comm) {
  if (comm.size <= 0) return "";
  if (comm.size == CountRanks(job)) return kAllRanks;
  const std::vector<int32_t> ranks = GlobalRanks(job, comm);
  if (ranks.empty()) return "";
  const size_t known = ranks.size();
  const std::string words = RanksInWords(ranks);
  const size_t unknown = static_cast<size_t>(comm.size) - std::min(known, size_t(comm.size));
  return absl::StrCat(comm.size, kRanksFollow, words.substr(words.find(' ') + 1),
                      unknown == 0 ? "" : absl::StrCat(" and ", unknown, " unknown"));
}

}  // namespace

std::string NameForPeople(const JobState& job, const Communicator& comm) {
  absl::string_view name = comm.name;
  absl::ConsumePrefix(&name, kOfAMesh);
  if (!name.empty() && name != kNoDescription && name != kNoName) {
    return std::string(name);
  }
  return NameByRanks(job, comm);
}

bool IsMadeOfRanks(const std::string& name) {
  if (name == kAllRanks) return true;
  const size_t follow = name.find(kRanksFollow);
  if (follow == std::string::npos || name.find_first_not_of("0123456789") != follow) return false;
  // "0-2,7", "0,1 and 6 unknown"
  for (const absl::string_view word :
       absl::StrSplit(name.substr(follow + strlen(kRanksFollow)), ' ')) {
    const bool is_list = word.find_first_not_of("0123456789,-") == absl::string_view::npos;
    if (!is_list && word != "and" && word != "more" && word != "unknown") return false;
  }
  return true;
}

std::string CommunicatorInWords(const JobState& job, const Communicator& comm) {
  return CommunicatorInWords(comm.id, NameForPeople(job, comm), comm.kind);
}

}  // namespace rollcall
