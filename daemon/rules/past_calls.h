// SPDX-License-Identifier: Apache-2.0
// The calls that a rank has made on the communicators of a cycle, in one sequence.
#pragma once

#include <cstdint>
#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

#include "daemon/model/habit.h"
#include "daemon/model/job_state.h"
#include "daemon/rules/stuck_call.h"

namespace rollcall {

struct PastCall {
  const Communicator* communicator = nullptr;
  const CallRecord* record = nullptr;
  // When the process entered it, by the first estimate of its host's clock: only for the order of
  // the calls of one process. Not before an earlier call on the communicator.
  int64_t entered_ns = 0;
};

struct Past {
  std::vector<PastCall> calls;  // on the communicators of the cycle, in order; the newest
  bool is_whole = true;         // these are all such calls of the process
};

// The member's collectives up to this position, as far as its records reach back without a gap.
std::vector<const CallRecord*> CallsUpTo(const Member& member, uint64_t position);

// Equal for equal calls. `with_count` false: whatever their number of elements.
std::vector<CallToken> TokensOf(const Past& past, bool with_count);

// The communicators of these calls, each once.
std::vector<const Communicator*> CommunicatorsOf(const StuckCalls& calls,
                                                 const std::vector<size_t>& cycle);

// A rank of a communicator.
struct PastMember {
  const Communicator* communicator = nullptr;
  const Member* member = nullptr;
};

// Finds each rank's past once.
class Pasts {
 public:
  explicit Pasts(std::vector<const Communicator*> comms) : comms_(std::move(comms)) {}

  const Past& Of(int32_t process);

 private:
  void FindMembers();

  std::vector<const Communicator*> comms_;  // whose members have not been looked at
  std::unordered_map<int32_t, std::vector<PastMember>> members_;  // by process
  std::map<int32_t, Past> pasts_;
};

}  // namespace rollcall
