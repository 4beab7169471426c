// SPDX-License-Identifier: Apache-2.0
// The daemon's requests for stacks that the agent has not answered yet. Bounded: a daemon cannot
// fill the agent's memory.
//
// Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "agent/processes/process_id.h"

namespace rollcall {

struct PendingRequest {
  uint64_t stream = 0;   // that asked
  uint64_t request = 0;  // the daemon's number
  std::vector<ProcessId> processes;
};

class StackQueue {
 public:
  static constexpr size_t kMostRequests = 64;
  static constexpr size_t kMostProcesses = 4096;  // of all requests together

  bool empty() const { return requests_.empty(); }
  // False: there is no room, and `*request` is unchanged.
  bool Push(PendingRequest* request);
  PendingRequest Pop();  // REQUIRES: not empty
  void Clear();

 private:
  std::deque<PendingRequest> requests_;
  size_t processes_ = 0;
};

}  // namespace rollcall
