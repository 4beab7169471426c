// SPDX-License-Identifier: Apache-2.0
#include "daemon/rules/claimed_sizes.h"

#include <algorithm>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "daemon/model/client_limits.h"
#include "daemon/rules/stuck_call.h"
#include "daemon/words/terms.h"

namespace rollcall {
namespace {

constexpr size_t kNamedSizes = 3;

// Returns by rank the sizes other than that of the communicator.
std::map<int32_t, int32_t> OtherSizes(const Communicator& comm) {
  std::map<int32_t, int32_t> sizes;
  for (const ClaimedSize& claim : comm.claims) sizes[claim.rank] = claim.size;
  return sizes;
}

// NCCL has refused some ranks, all of them with other sizes than those that it has not. The size of
// these; 0 if it has not.
int32_t AcceptedSize(const Communicator& comm, const std::map<int32_t, int32_t>& others) {
  std::set<int32_t> accepted, refused;
  for (const auto& [rank, member] : comm.members) {
    const auto other = others.find(rank);
    const int32_t size = other == others.end() ? comm.size : other->second;
    (member.state == MemberState::kFailed ? refused : accepted).insert(size);
  }
  if (accepted.size() != 1 || refused.empty()) return 0;
  return refused.count(*accepted.begin()) == 0 ? *accepted.begin() : 0;
}

}  // namespace

int32_t SmallestSize(const Communicator& comm) {
  int32_t size = comm.size;
  for (const ClaimedSize& claim : comm.claims) size = std::min(size, claim.size);
  return size;
}

SizeDispute JudgeClaimedSizes(const Communicator& comm) {
  SizeDispute dispute;
  // The sizes of the ranks beyond the limit are not known.
  if (comm.claims.empty() || comm.claims.size() >= limits::kClaimedSizes) return dispute;
  const std::map<int32_t, int32_t> others = OtherSizes(comm);
  const auto size_of = [&](int32_t rank) {
    const auto other = others.find(rank);
    return other == others.end() ? comm.size : other->second;
  };
  std::map<int32_t, size_t> ranks;  // by the size that they claim
  for (const auto& [rank, member] : comm.members) ++ranks[size_of(rank)];
  const auto most = std::max_element(
      ranks.begin(), ranks.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  // Ranks that are still on their way may agree with the others.
  const bool is_majority =
      2 * most->second > static_cast<size_t>(std::max(ranks.rbegin()->first, 0));
  dispute.size = is_majority ? most->first : AcceptedSize(comm, others);
  if (dispute.size == 0) return dispute;
  for (const auto& [rank, member] : comm.members) {
    const int32_t size = size_of(rank);
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
