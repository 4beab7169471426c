// SPDX-License-Identifier: Apache-2.0
// Who waits in which call, and who is gone: the questions that all rules ask of
// a JobState. Pure; safe on any state, also a contradictory one (process
// indices, ranks and sizes come from files that may be damaged).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "daemon/model/job_state.h"

namespace rollcall {

// What shows that a rank waits, weakest first.
enum class Proof : uint8_t {
  kIndirect,  // its host waits for the GPU, though after a call on another communicator
  kInferred,  // its host waits for the GPU after this call, or its agent is silent by now
  kShown,     // the GPU's markers say so, or the host stands inside the call
};

struct Wait {
  uint64_t position = 0;  // of the call; without markers the newest that it can be
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

// A communicator with more ranks than this is damaged data, and is passed over.
inline constexpr int32_t kMaxRanks = 1 << 18;

// nullptr where nothing is known of the process.
const Process* FindProcess(const JobState& job, int32_t process);

// The rank people know: global where the environment gave it.
int32_t PublicRank(const JobState& job, int32_t process, int32_t rank);

// Whether and how its process ended.
Gone HowProcessEnded(const JobState& job, int32_t process);

// An exception that nobody caught is ending its process, or has, and it has made
// no call since.
bool HasFailed(const JobState& job, const Member& member);

// Like HowProcessEnded(), and kLeft also for a rank that lives on but has left,
// or is leaving, the communicator, or is being ended by an exception.
Gone HowGone(const JobState& job, const Member& member);

// Since when it is gone; 0 if that is not known.
int64_t GoneSince(const JobState& job, const Member& member);

// The agent that speaks for the process; nullptr: none, what is known is fresh.
const AgentState* FindAgent(const JobState& job, int32_t process);

// The process lives, for all that is known, and its agent's ticks are missing.
bool IsStale(const JobState& job, int32_t process);

// Its agent is heard, or need not be: it is read from a file, or has ended.
bool IsHeard(const JobState& job, int32_t process);

// False where what is known of the process may be out of date, or whether it lives is not known.
bool IsFresh(const JobState& job, int32_t process);

// No wait of the process counts from before that.
int64_t CountsFrom(const JobState& job, int32_t process);

bool InRange(const Communicator& comm, int32_t rank);

// Ranks 0..size-1 that nothing is known of.
std::vector<int32_t> UnknownRanks(const Communicator& comm);

// Since when the host has waited for the GPU, in whatever stream; 0: it does not.
int64_t GpuWaitSince(const Process& process);

// Does the rank wait in a collective of `comm`? Ranks that are gone do not wait,
// nor do those that only wait for a send or receive.
std::optional<Wait> FindWait(const JobState& job, const Communicator& comm, const Member& member);

std::vector<Waiter> FindWaiters(const JobState& job, const Communicator& comm);

// Some rank has come out of the creation of the communicator.
bool HasFormed(const Communicator& comm);

// The collective at `position`, nullptr if its record is lost. Calls that failed
// at once have no position and are never returned.
const CallRecord* FindCollective(const Member& member, uint64_t position);

// NCCL took the call: it did not fail at once.
bool IsAccepted(const CallRecord& record);

// NCCL took it, and not for a CUDA graph to make it later.
bool Happens(const CallRecord& record);

// It is a collective that happens, so that it has a position of its own.
bool TakesPosition(const CallRecord& record);

// Calls of two threads that were inside at once. A member of a group that was
// never seen to end proves nothing.
bool Overlap(const CallRecord& first, const CallRecord& second);

// Of a count: its number of binary digits. Calls of one class take about as long.
uint8_t SizeClass(uint64_t count);

// The oldest wait that the member shows, of any kind; 0: none.
int64_t WaitsSince(const Member& member);

// The newest call on the communicator was a send or a receive.
bool LastCallIsP2p(const Member& member);

// What the newest collective called; kNone where its record is lost.
CallArgs CallAtNewest(const Member& member);

// ncclRemoteError: a peer is gone.
bool IsRemoteError(int32_t code);

// All known ranks have gone beyond the call, so it has not stopped the job.
bool HasMovedPast(const JobState& job, uint64_t communicator, uint64_t position);

}  // namespace rollcall
