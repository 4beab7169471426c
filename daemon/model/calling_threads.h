// SPDX-License-Identifier: Apache-2.0
// Which thread of a process makes its calls, and whether anything orders the calls of two of them.
// Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "daemon/model/job_state.h"

namespace rollcall {

// Whether a thread beside the main one waits for a key of a store. It may wait for good, and shows
// nothing of the program.
bool WaitsBeside(const Process& process, const BlockedCall& blocked);

// Which threads of a process wait for messages of MPI on a communicator.
struct MessageThreads {
  bool is_main = false, is_beside = false;
  int64_t main_since_ns = 0;  // the main thread waits
};
MessageThreads FindMessageThreads(const Process& process, uint64_t communicator);

// Whether its main thread is inside a recorded call.
bool IsMainInside(const Process& process);

// The threads by which the process stands in its calls, best first: those inside a call, the
// longest first; then those that make its calls, if the main thread makes none. By their numbers in
// the agent's stacks. Empty for the main thread, or if unknown.
std::vector<uint32_t> CallingTids(const Process& process);

// Returns the same for one rank of a communicator. Other ranks of its process have threads of their
// own; kAnyRank: it holds only this one.
inline constexpr int32_t kAnyRank = -1;
std::vector<uint32_t> CallingTids(const Process& process, const Communicator& comm, int32_t rank);

// Whether these are two threads of the process, and neither waits for the other's calls: the main
// thread, which calls backward(), waits for PyTorch's own.
bool MayRace(const JobState& job, int32_t process, uint32_t a, uint32_t b);

// A thread with calls on a communicator that another thread uses as well, and nothing orders them.
struct RacingThread {
  uint32_t thread = 0;  // CallRecord::thread
  std::string name;     // empty if unknown
  size_t newest = 0;    // index of its newest record in Member::records
};

// The threads of the member without an order among them, as far as its records show; empty if one
// thread makes all calls, one has taken the communicator over from the other, or MayRace() is
// false.
std::vector<RacingThread> FindRacingThreads(const JobState& job, const Member& member);

}  // namespace rollcall
