// SPDX-License-Identifier: Apache-2.0
#include "daemon/server/views/rank_state.h"

#include <algorithm>

#include "daemon/model/progress.h"

namespace rollcall {

char LagCharacter(uint64_t calls) {
  return static_cast<char>('0' + std::min<int>(SizeClass(calls), 9));
}

uint64_t MostEntered(const Communicator& comm) {
  uint64_t most = 0;
  for (const auto& [rank, member] : comm.members) most = std::max(most, member.entered);
  return most;
}

char StateCharacter(const JobState& job, const Communicator& comm, const Member& member,
                    uint64_t most) {
  const Process* process = FindProcess(job, member.process);
  const Liveness liveness = process == nullptr ? Liveness::kUnknown : process->liveness;
  if (liveness == Liveness::kDied) return rank_state::kDied;
  if (liveness == Liveness::kEnded) return rank_state::kEnded;
  if (liveness == Liveness::kExited) return rank_state::kExited;
  if (liveness == Liveness::kSilent) return rank_state::kSilent;
  if (member.state == MemberState::kInitializing) return rank_state::kBeingCreated;
  if (HowGone(job, member) == Gone::kLeft && member.state != MemberState::kFinalizing) {
    return rank_state::kLeft;
  }
  if (FindWait(job, comm, member).has_value() || member.p2p_waiting_since_ns != 0) {
    return rank_state::kWaits;
  }
  if (member.entered < most) return LagCharacter(most - member.entered);
  return rank_state::kMoves;
}

}  // namespace rollcall
