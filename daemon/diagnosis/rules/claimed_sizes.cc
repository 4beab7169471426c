// SPDX-License-Identifier: Apache-2.0
#include "daemon/diagnosis/rules/claimed_sizes.h"

#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "daemon/diagnosis/rules/stuck_call.h"
#include "daemon/words/terms.h"

namespace rollcall {
namespace {

constexpr size_t kNamedSizes = 3;

int32_t SizeClaimedBy(const Communicator& comm, int32_t rank) {
  const auto* claim = std::find_if(comm.claims.begin(), comm.claims.end(),
                                   [rank](const ClaimedSize& c) { return c.rank == rank; });
  return claim == comm.claims.end() ? comm.size : claim->size;
}

}  // namespace

SizeDispute JudgeClaimedSizes(const Communicator& comm) {
  SizeDispute dispute;
  if (comm.claims.empty()) return dispute;
  std::map<int32_t, size_t> ranks;  // by the size that they claim
  for (const auto& [rank, member] : comm.members) ++ranks[SizeClaimedBy(comm, rank)];
  const auto most = std::max_element(ranks.begin(), ranks.end(), [](const auto& a, const auto& b) {
    return a.second < b.second;
  });
  if (most == ranks.end() || 2 * most->second <= comm.members.size()) return dispute;
  dispute.size = most->first;
  for (const auto& [rank, member] : comm.members) {
    const int32_t size = SizeClaimedBy(comm, rank);
    if (size != dispute.size) dispute.wrong.push_back({rank, size});
  }
  return dispute;
}

std::string DisputeInWords(const JobState& job, const Communicator& comm,
                           const SizeDispute& dispute) {
  std::map<int32_t, std::vector<int32_t>> by_size;
  for (const ClaimedSize& claim : dispute.wrong) {
    const Member* member = FindMember(comm, claim.rank);
    by_size[claim.size].push_back(
        PublicRank(job, member == nullptr ? -1 : member->process, claim.rank));
  }
  std::vector<std::string> parts;
  for (const auto& [size, ranks] : by_size) {
    if (parts.size() == kNamedSizes) break;
    parts.push_back(absl::StrCat(RanksInWords(ranks), " passed ", size));
  }
  return absl::StrCat(absl::StrJoin(parts, ", "), ", the others ", dispute.size);
}

}  // namespace rollcall
