// SPDX-License-Identifier: Apache-2.0
#include "daemon/diagnosis/p2p_sizes.h"

#include <algorithm>
#include <vector>

#include "daemon/model/progress.h"
#include "daemon/rules/stuck_call.h"

namespace rollcall {

int64_t P2pWaitsSince(const Communicator& comm) {
  int64_t oldest = 0;
  for (const auto& [rank, member] : comm.members) {
    if (member.p2p_entered == 0) continue;
    int64_t since = member.p2p_waiting_since_ns;
    if (since == 0 && LastCallIsP2p(member)) since = WaitsSince(member);
    if (since != 0 && (oldest == 0 || since < oldest)) oldest = since;
  }
  return oldest;
}

bool DoSizesDiffer(const JobState& job, const Communicator& comm, RankFinder* finder) {
  if (!MayHaveP2pRecords(comm)) return false;  // MPI permits it
  std::vector<StuckCall> calls;
  FindStuckP2p(job, comm, finder, &calls);
  return std::any_of(calls.begin(), calls.end(), [](const StuckCall& call) {
    return call.size_differs && call.absents.empty() && !call.is_pair_guessed;
  });
}

}  // namespace rollcall
