// SPDX-License-Identifier: Apache-2.0
// Functions on a JobState that all rules use: which rank waits in which call, and
// which rank is gone. Pure; safe on any state, also a contradictory one (process
// indices, ranks and sizes come from files that may be damaged).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "daemon/model/job_state.h"
#include "daemon/model/rank_range.h"

namespace rollcall {

// What shows that a rank waits, weakest first.
enum class Proof : uint8_t {
  kIndirect,  // its host waits for the GPU after a call on another communicator
  kInferred,  // its host waits for the GPU after this call, or its agent has become silent
  kShown,     // GPU markers show the wait, or its host thread is inside the call
};

struct Wait {
  uint64_t position = 0;  // of the call; without markers the newest possible one
  int64_t since_ns = 0;
  Proof proof = Proof::kShown;
};

// A rank that waits.
struct Waiter {
  int32_t rank = -1;  // in the communicator
  int32_t process = -1;
  Wait wait;
};

enum class Gone : uint8_t {
  kNo,
  kLeft,
  kDied,
  kEnded,  // its process ended; the exit status is unknown
};

inline bool MayHaveDied(Gone gone) { return gone == Gone::kDied || gone == Gone::kEnded; }

// A communicator with more ranks than this is damaged data: the rules skip it.
inline constexpr int32_t kMaxRanks = 1 << 18;

// nullptr if the job has no such process.
const Process* FindProcess(const JobState& job, int32_t process);

// The rank to show to people: the global rank if the environment gave one and the process is one
// rank, else `rank`, which counts in the communicator.
int32_t PublicRank(const JobState& job, int32_t process, int32_t rank);

// Whether and how its process ended.
Gone HowProcessEnded(const JobState& job, int32_t process);

// True if an uncaught exception has ended the member's process or is ending it: the
// process has made no call since.
bool HasFailed(const JobState& job, const Member& member);

// True if the exception that ended the process is the loss of a peer: another rank was gone before.
bool LostAPeer(const Process& process);

// Does what HowProcessEnded() does. Returns kLeft also for a live rank that has left the
// communicator, that is leaving it, or that an exception is ending.
Gone HowGone(const JobState& job, const Member& member);

// When the rank died or left; 0 if that is not known.
int64_t GoneSince(const JobState& job, const Member& member);

// The agent that reports on the process; nullptr if there is none, and the data counts as fresh.
const AgentState* FindAgent(const JobState& job, int32_t process);

// True if the process has not ended, as far as its agent has reported, and ticks of the
// agent are missing; or if the agent was restarted and has not found the segment of the process
// yet, so that the newest calls are those that the agent before has reported.
bool IsStale(const JobState& job, int32_t process);

// True if reports on the process arrive, or none are needed: its data comes from a file,
// or it has ended.
bool IsHeard(const JobState& job, int32_t process);

// False if the data on the process may be out of date, or if no agent has reported whether
// it lives.
bool IsFresh(const JobState& job, int32_t process);

// Whether a signal or the freezer of a control group keeps the process from running: a person wants
// it to stand still. Not a debugger, as which Rollcall stops threads itself, for a moment.
bool IsSuspended(const JobState& job, int32_t process);

// Whether a signal, a debugger or the freezer of a control group keeps the process from running.
bool IsStopped(const JobState& job, int32_t process);

// The waits of the process count from this time on.
int64_t CountsFrom(const JobState& job, int32_t process);

bool InRange(const Communicator& comm, int32_t rank);

// The ranks of 0..size-1 on which there is no report, in order: at most one range more than there
// are members, whatever size the communicator claims.
std::vector<RankRange> UnknownRanks(const Communicator& comm);

// When the host began to wait for the GPU, on any stream; 0 if it does not wait.
int64_t GpuWaitSince(const Process& process);

// Whether nothing has been heard of the process for a time.
inline bool IsSilent(const Process& process) { return process.liveness == Liveness::kSilent; }

// What shows that the member waits, if its host is inside a call on the communicator. A loop of
// tests may do other work, and does some where it rests at a socket or a pipe and serves what comes
// there.
Proof HostProof(const JobState& job, const Communicator& comm, const Member& member);

// The rank's wait in a collective of `comm`. None for a rank that is gone and for a
// rank that waits only for a send or receive.
std::optional<Wait> FindWait(const JobState& job, const Communicator& comm, const Member& member);

std::vector<Waiter> FindWaiters(const JobState& job, const Communicator& comm);

// True if some rank has returned from the creation of the communicator.
bool HasFormed(const Communicator& comm);

// The collective at `position`; nullptr if its record is lost. Skips calls that
// failed at once: they have no position.
const CallRecord* FindCollective(const Member& member, uint64_t position);

// True if NCCL accepted the call: it did not fail at once.
bool IsAccepted(const CallRecord& record);

// True if NCCL accepted the call, and not only to capture it into a CUDA graph.
bool Happens(const CallRecord& record);

// True for a collective that happens: it has a position of its own.
bool TakesPosition(const CallRecord& record);

// True if two threads were inside these calls at the same time. A call in a group
// whose end is not recorded proves nothing.
bool Overlap(const CallRecord& first, const CallRecord& second);

// The number of binary digits of a count. Calls of one class take about as long.
uint8_t SizeClass(uint64_t count);

// When the member's oldest wait of any kind began; 0 if it does not wait.
int64_t WaitsSince(const Member& member);

// True if the member's newest call on the communicator is a send or a receive.
bool LastCallIsP2p(const Member& member);

// The arguments of the member's newest collective; op is kNone if its record is lost.
CallArgs CallAtNewest(const Member& member);

// True for ncclRemoteError, which NCCL reports when a peer is gone.
bool IsRemoteError(int32_t code);

// True if all reported ranks have continued past the call: it has not stopped the job.
bool HasMovedPast(const JobState& job, uint64_t communicator, uint64_t position);

}  // namespace rollcall
