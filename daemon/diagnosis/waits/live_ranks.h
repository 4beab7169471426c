// SPDX-License-Identifier: Apache-2.0
// Which ranks go on: they begin calls and messages, while others wait for them or while one of
// their threads waits. Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "daemon/rules/stuck_call.h"

namespace rollcall {

// Whether the call is a wait for messages of MPI, of which only counts are known.
bool IsOfMessages(const StuckCall& call);

class LiveRanks {
 public:
  // Looks at the members of the job only if one of the calls is a wait for messages.
  LiveRanks(const JobState& job, const StuckCalls& calls, int64_t now_ns, const Limits& limits);

  // Whether the process has begun a call since then, and lately. It may come to what others wait
  // for.
  bool GoesOn(int32_t process, int64_t since_ns) const;

  // When it has begun its newest call or message; 0 if unknown.
  int64_t Newest(int32_t process) const;

  // Whether a thread beside its main one waits for messages: then what the process receives is not
  // a sign that its main thread goes on.
  bool Listens(int32_t process) const;

  // The processes that exchange messages and live.
  std::vector<int32_t> FindProcesses() const;

 private:
  const JobState& job_;
  std::vector<int64_t> newest_;
  int64_t lately_ns_ = 0;
};

// A wait for messages is as long as those who owe them have begun no other call, unless threads
// beside the main one may have begun them.
void CountFromNewestCall(const JobState& job, const LiveRanks& live, Verdict* verdict);

}  // namespace rollcall
