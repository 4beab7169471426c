// SPDX-License-Identifier: Apache-2.0
#include "daemon/report/rank_state.h"

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

namespace {

bool WaitsHere(const JobState& job, const Communicator& comm, const Member& member) {
  return FindWait(job, comm, member).has_value() || member.p2p_waiting_since_ns != 0;
}

// The state of a rank that cannot wait any more or not yet; '\0': it may wait.
char WithoutCalls(const JobState& job, const Member& member) {
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
  return '\0';
}

}  // namespace

RankStates::RankStates(const JobState& job) : job_(job), waits_(job.processes.size()) {
  for (const auto& [id, comm] : job.communicators) {
    for (const auto& [rank, member] : comm.members) {
      const auto process = static_cast<size_t>(member.process);
      if (process >= waits_.size() || waits_[process]) continue;
      waits_[process] = WaitsHere(job, comm, member);
    }
  }
}

char RankStates::Of(const Communicator& comm, const Member& member, uint64_t most) const {
  const char without = WithoutCalls(job_, member);
  if (without != '\0') return without;
  if (WaitsHere(job_, comm, member)) return rank_state::kWaits;
  const auto process = static_cast<size_t>(member.process);
  if (process < waits_.size() && waits_[process]) return rank_state::kWaitsElsewhere;
  return member.entered < most ? LagCharacter(most - member.entered) : rank_state::kMoves;
}

}  // namespace rollcall
