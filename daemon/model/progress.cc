// SPDX-License-Identifier: Apache-2.0
#include "daemon/model/progress.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/match.h"
#include "daemon/model/waits/wait_frames.h"

namespace rollcall {
namespace {

constexpr uint8_t kSuccess = 0;      // ncclSuccess
constexpr int32_t kRemoteError = 6;  // ncclRemoteError
constexpr uint8_t kInProgress = 7;   // ncclInProgress: a non-blocking communicator

// For a member whose host is inside a call on `comm`: true if the call is a collective,
// or a group that ends with one. Creation of a child and teardown are other waits.
bool HostIsInCollective(const JobState& job, const Communicator& comm, const Member& member) {
  const Process* process = FindProcess(job, member.process);
  if (process != nullptr) {
    for (const BlockedCall& blocked : process->blocked) {
      const CallKind kind = OpKind(blocked.op);
      if (kind == CallKind::kGroup) continue;
      if (blocked.communicator == comm.id) {
        return kind == CallKind::kCollective || kind == CallKind::kHostWait ||
               kind == CallKind::kTest;
      }
    }
  }
  return !LastCallIsP2p(member);
}

std::optional<Wait> WaitByMarkers(const Member& member) {
  if (member.finished >= member.entered || member.started <= member.finished) return std::nullopt;
  // 0 if the call is in a group that has not ended, so the GPU has not started it.
  if (member.waiting_since_ns == 0) return std::nullopt;
  return Wait{member.Awaits(), member.waiting_since_ns, Proof::kShown};
}

std::optional<Wait> WaitByHost(const JobState& job, const Communicator& comm,
                               const Member& member) {
  if (member.has_markers && member.finished >= member.entered) return std::nullopt;
  if (member.host_blocked_since_ns != 0 && HostIsInCollective(job, comm, member)) {
    const uint64_t call = member.has_markers ? member.Awaits() : member.entered - 1;
    return Wait{call, member.host_blocked_since_ns, Proof::kShown};
  }
  if (member.has_markers || LastCallIsP2p(member)) return std::nullopt;
  if (member.host_waits_since_ns != 0) {
    return Wait{member.entered - 1, member.host_waits_since_ns, Proof::kInferred};
  }
  const Process* process = FindProcess(job, member.process);
  // Another rank of the process may be the one that waits.
  if (process == nullptr || process->holds_several) return std::nullopt;
  const int64_t since = GpuWaitSince(*process);
  if (since == 0) return std::nullopt;
  return Wait{member.entered - 1, since, Proof::kIndirect};
}

bool CanWait(const JobState& job, const Member& member) {
  if (member.entered == 0 || HowProcessEnded(job, member.process) != Gone::kNo) return false;
  return member.state == MemberState::kReady || member.state == MemberState::kFinalizing;
}

// True if the newest report has the process without the calls that an earlier one had.
bool LacksCalls(const JobState& job, int32_t process) {
  const Process& known = *FindProcess(job, process);
  return known.has_met && !known.has_segment && !job.offline;
}

// A loop of tests of the communicator's requests; nullptr if no thread is in one.
const BlockedCall* FindLoop(const Process& process, const Communicator& comm) {
  for (const BlockedCall& blocked : process.blocked) {
    if (blocked.communicator == comm.id && IsTest(blocked.op)) return &blocked;
  }
  return nullptr;
}

// Whether it rests between two tests. Only of the main thread is it known where it sleeps.
bool RestsAtInput(const Process& process, const BlockedCall& loop) {
  return static_cast<int32_t>(loop.thread) == process.pid && process.state == 'S' &&
         HasWait(process.wait_channel, waits::kInputInKernel);
}

}  // namespace

int64_t GpuWaitSince(const Process& process) {
  int64_t since = 0;
  for (const BlockedCall& blocked : process.blocked) {
    if (OpKind(blocked.op) != CallKind::kWait) continue;
    if (since == 0 || blocked.since_ns < since) since = blocked.since_ns;
  }
  return since;
}

bool IsAccepted(const CallRecord& record) {
  return record.result == kSuccess || record.result == kInProgress;
}

bool Happens(const CallRecord& record) { return IsAccepted(record) && !record.captured; }

bool TakesPosition(const CallRecord& record) {
  return OpKind(record.args.op) != CallKind::kP2p && Happens(record);
}

bool Overlap(const CallRecord& first, const CallRecord& second) {
  if (first.thread == second.thread || first.entered_ns == 0) return false;
  if (first.returned_ns == 0) return first.group == 0;
  return first.returned_ns > second.entered_ns;
}

int64_t WaitsSince(const Member& member) {
  const auto earliest = [](int64_t a, int64_t b) {
    return a == 0 || b == 0 ? std::max(a, b) : std::min(a, b);
  };
  int64_t since = earliest(member.waiting_since_ns, member.p2p_waiting_since_ns);
  since = earliest(since, member.host_blocked_since_ns);
  since = earliest(since, member.host_waits_since_ns);
  return member.state == MemberState::kInitializing ? earliest(since, member.init_entered_ns)
                                                    : since;
}

uint8_t SizeClass(uint64_t count) {
  uint8_t digits = 0;
  for (; count != 0; count >>= 1) ++digits;
  return digits;
}

bool LastCallIsP2p(const Member& member) {
  if (member.records.empty()) return member.p2p_entered > member.p2p_returned;
  return OpKind(member.records.back().args.op) == CallKind::kP2p;
}

const Process* FindProcess(const JobState& job, int32_t process) {
  if (process < 0 || static_cast<size_t>(process) >= job.processes.size()) return nullptr;
  return &job.processes[process];
}

int32_t PublicRank(const JobState& job, int32_t process, int32_t rank) {
  const Process* known = FindProcess(job, process);
  if (known == nullptr || known->global_rank < 0) return rank;
  return known->holds_several && rank >= 0 ? rank : known->global_rank;
}

Gone HowProcessEnded(const JobState& job, int32_t process) {
  const Process* known = FindProcess(job, process);
  if (known == nullptr) return Gone::kNo;
  if (known->liveness == Liveness::kDied) return Gone::kDied;
  if (known->liveness == Liveness::kEnded) return Gone::kEnded;
  return known->liveness == Liveness::kExited ? Gone::kLeft : Gone::kNo;
}

bool HasFailed(const JobState& job, const Member& member) {
  const Process* known = FindProcess(job, member.process);
  if (known == nullptr || known->error.empty()) return false;
  // Interactive programs print an exception and continue.
  return member.records.empty() || member.records.back().entered_ns <= known->error_ns;
}

bool LostAPeer(const Process& process) {
  // What is thrown in a call whose other ranks are gone: by gloo's transport, and by NCCL's.
  constexpr const char* kTexts[] = {
      "Connection closed by peer",
      "Connection reset by peer",
      "ncclRemoteError",
  };
  return std::any_of(std::begin(kTexts), std::end(kTexts),
                     [&](const char* text) { return absl::StrContains(process.error, text); });
}

Gone HowGone(const JobState& job, const Member& member) {
  const Gone gone = HowProcessEnded(job, member.process);
  const bool failed = HasFailed(job, member);
  if (gone == Gone::kEnded && failed) return Gone::kLeft;
  if (gone != Gone::kNo) return gone;
  if (failed) return Gone::kLeft;
  switch (member.state) {
    case MemberState::kFinalizing:
    case MemberState::kFinalized:
    case MemberState::kDestroyed:
    case MemberState::kAborted:
    case MemberState::kRevoked:
      return Gone::kLeft;
    case MemberState::kInitializing:
    case MemberState::kReady:
    case MemberState::kFailed:
      break;
  }
  return Gone::kNo;
}

int64_t GoneSince(const JobState& job, const Member& member) {
  if (HasFailed(job, member)) return FindProcess(job, member.process)->error_ns;
  if (HowProcessEnded(job, member.process) != Gone::kNo) {
    return FindProcess(job, member.process)->ended_ns;
  }
  return member.state_since_ns;
}

const AgentState* FindAgent(const JobState& job, int32_t process) {
  const Process* known = FindProcess(job, process);
  if (known == nullptr || known->agent < 0) return nullptr;
  const auto agent = static_cast<size_t>(known->agent);
  return agent < job.agents.size() ? &job.agents[agent] : nullptr;
}

bool IsStale(const JobState& job, int32_t process) {
  const AgentState* agent = FindAgent(job, process);
  if (agent == nullptr || agent->silent) return false;
  if (!agent->stale && !LacksCalls(job, process)) return false;
  return HowProcessEnded(job, process) == Gone::kNo;
}

bool IsHeard(const JobState& job, int32_t process) {
  const Process* known = FindProcess(job, process);
  return known == nullptr || (known->liveness != Liveness::kSilent && !IsStale(job, process));
}

bool IsSuspended(const JobState& job, int32_t process) {
  const Process* known = FindProcess(job, process);
  return known != nullptr && IsSuspended(*known);
}

bool IsStopped(const JobState& job, int32_t process) {
  const Process* known = FindProcess(job, process);
  return known != nullptr && !HasEnded(*known) && (IsSuspended(*known) || known->state == 't');
}

int64_t CountsFrom(const JobState& job, int32_t process) {
  const AgentState* agent = FindAgent(job, process);
  return agent == nullptr ? job.counts_from_ns
                          : std::max(job.counts_from_ns, agent->counts_from_ns);
}

bool IsFresh(const JobState& job, int32_t process) {
  const Process* known = FindProcess(job, process);
  if (known == nullptr || !IsHeard(job, process)) return false;
  return job.offline || known->liveness != Liveness::kUnknown;
}

bool InRange(const Communicator& comm, int32_t rank) {
  return rank >= 0 && rank < comm.size && comm.size <= kMaxRanks;
}

std::vector<RankRange> UnknownRanks(const Communicator& comm) {
  std::vector<RankRange> unknown;
  if (comm.size > kMaxRanks || comm.members.size() >= static_cast<size_t>(comm.size)) {
    return unknown;
  }
  int32_t next = 0;
  for (const auto& [rank, member] : comm.members) {
    if (rank >= comm.size) break;
    if (rank > next) unknown.push_back({next, rank - 1});
    next = rank + 1;
  }
  if (next < comm.size) unknown.push_back({next, comm.size - 1});
  return unknown;
}

Proof HostProof(const JobState& job, const Communicator& comm, const Member& member) {
  if (!IsFresh(job, member.process)) return Proof::kInferred;
  const Process& process = job.processes[static_cast<size_t>(member.process)];
  const BlockedCall* loop = FindLoop(process, comm);
  if (loop == nullptr) return Proof::kShown;
  return RestsAtInput(process, *loop) ? Proof::kIndirect : Proof::kInferred;
}

std::optional<Wait> FindWait(const JobState& job, const Communicator& comm, const Member& member) {
  if (!CanWait(job, member)) return std::nullopt;
  std::optional<Wait> wait;
  if (member.has_markers) wait = WaitByMarkers(member);
  if (!wait) wait = WaitByHost(job, comm, member);
  if (wait && wait->proof == Proof::kShown) wait->proof = HostProof(job, comm, member);
  return wait;
}

std::vector<Waiter> FindWaiters(const JobState& job, const Communicator& comm) {
  std::vector<Waiter> waiters;
  for (const auto& [rank, member] : comm.members) {
    if (!InRange(comm, rank)) continue;
    const std::optional<Wait> wait = FindWait(job, comm, member);
    if (wait) waiters.push_back({rank, member.process, *wait});
  }
  return waiters;
}

bool HasFormed(const Communicator& comm) {
  return std::any_of(comm.members.begin(), comm.members.end(), [](const auto& entry) {
    return entry.second.state != MemberState::kInitializing &&
           entry.second.state != MemberState::kFailed;
  });
}

const CallRecord* FindCollective(const Member& member, uint64_t position) {
  // Positions never decrease along the records. A failed call and a p2p call have the
  // position of the collective that follows.
  auto it = std::lower_bound(
      member.records.begin(), member.records.end(), position,
      [](const CallRecord& record, uint64_t wanted) { return record.position < wanted; });
  for (; it != member.records.end() && it->position == position; ++it) {
    if (TakesPosition(*it)) return &*it;
  }
  return nullptr;
}

CallArgs CallAtNewest(const Member& member) {
  const CallRecord* record =
      member.entered == 0 ? nullptr : FindCollective(member, member.entered - 1);
  return record == nullptr ? CallArgs() : record->args;
}

bool IsRemoteError(int32_t code) { return code == kRemoteError; }

bool HasMovedPast(const JobState& job, uint64_t communicator, uint64_t position) {
  const auto found = job.communicators.find(communicator);
  if (found == job.communicators.end()) return true;
  for (const auto& [rank, member] : found->second.members) {
    if (member.entered <= position) return false;
    const std::optional<Wait> wait = FindWait(job, found->second, member);
    if (wait && wait->proof != Proof::kIndirect && wait->position <= position) return false;
    if (HowGone(job, member) == Gone::kLeft) continue;
    // Without markers only a later call shows that the GPU has finished this one.
    if (member.has_markers ? member.finished <= position : member.entered <= position + 1) {
      return false;
    }
  }
  return true;
}

}  // namespace rollcall
