// SPDX-License-Identifier: Apache-2.0
#include "daemon/report/communicator_view.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/numbers.h"
#include "daemon/model/progress.h"
#include "daemon/report/calls_view.h"
#include "daemon/report/incident_proto.h"
#include "daemon/report/public_ranks.h"
#include "daemon/report/rank_state.h"
#include "daemon/report/status_view.h"
#include "daemon/words/rank_ranges.h"

namespace rollcall {
namespace {

constexpr int32_t kMostMissing = 1 << 18;  // a damaged size must not fill the memory

const Communicator* FindCommunicator(const JobState& job, const std::string& text) {
  uint64_t id = 0;
  if (!absl::SimpleHexAtoi(text, &id)) return nullptr;
  const auto at = job.communicators.find(id);
  return at == job.communicators.end() ? nullptr : &at->second;
}

struct Seat {
  int32_t rank;  // in the communicator
  const Member* member;
};

// Members that are behind come first: the page shows the first members of a large communicator.
std::vector<Seat> SeatsInOrder(const Communicator& comm) {
  std::vector<Seat> seats;
  seats.reserve(comm.members.size());
  for (const auto& [rank, member] : comm.members) seats.push_back({rank, &member});
  std::sort(seats.begin(), seats.end(), [](const Seat& a, const Seat& b) {
    return std::make_tuple(a.member->entered, a.rank) < std::make_tuple(b.member->entered, b.rank);
  });
  return seats;
}

std::string MissingRanks(const Communicator& comm) {
  std::vector<int32_t> missing;
  for (int32_t rank = 0; rank < std::min(comm.size, kMostMissing); ++rank) {
    if (comm.members.count(rank) == 0) missing.push_back(rank);
  }
  return missing.empty() ? "" : RankRanges(missing).List();
}

}  // namespace

bool FillCommunicatorView(const JobState& job, int64_t now_ns,
                          const v1::CommunicatorRequest& request, v1::CommunicatorView* view) {
  const Communicator* comm = FindCommunicator(job, request.id());
  if (comm == nullptr) return false;
  FillCommunicatorStatus(job, *comm, now_ns, view->mutable_status());
  const std::vector<Seat> seats = SeatsInOrder(*comm);
  view->set_total(static_cast<int32_t>(seats.size()));
  view->set_missing_ranks(MissingRanks(*comm));
  const int limit = request.limit() <= 0 ? kUsualMembers : std::min(request.limit(), kMaxMembers);
  const auto first = static_cast<size_t>(std::max(request.offset(), 0));
  const PublicRanks ranks(job);
  const RankStates states(job);
  for (size_t i = first; i < seats.size() && i < first + static_cast<size_t>(limit); ++i) {
    const Member& member = *seats[i].member;
    v1::MemberView* shown = view->add_members();
    shown->set_rank(ranks.FindRank(member.process));
    const Process* process = FindProcess(job, member.process);
    if (process != nullptr) shown->set_host(Utf8(process->host));
    const int64_t since_ns = WaitingSince(member);
    if (since_ns != 0) {
      shown->set_waited_seconds(static_cast<double>(std::max<int64_t>(now_ns - since_ns, 0)) / 1e9);
    }
    FillMemberCalls(job, states, *comm, seats[i].rank, member, 1, shown->mutable_calls());
  }
  return true;
}

}  // namespace rollcall
