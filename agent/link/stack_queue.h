// SPDX-License-Identifier: Apache-2.0
// The daemon's requests for stacks that the agent has not answered yet. Bounded: a daemon cannot
// fill the agent's memory. The users take turns, a process each, so slow processes of one user
// delay only that user. A user with many waiting requests gets no more room once less than a third
// is left, so the others always find some.
//
// Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <vector>

#include "agent/processes/process_id.h"
#include "rollcall/v1/agent.pb.h"

namespace rollcall {

// What is asked for, of each process of a request alike.
struct PendingQuestion {
  uint64_t stream = 0;               // that asked
  uint64_t request = 0;              // the daemon's number
  int64_t owner = -1;                // whose processes these are: PayerOfReads()
  bool children = false;             // with the threads of what the processes have started
  std::vector<uint64_t> network_of;  // communicators, whose transfers the answer has
  bool only_network = false;         // the answer has no stacks
};

struct PendingRequest : PendingQuestion {
  std::vector<ProcessId> processes;
};

class StackQueue {
 public:
  static constexpr size_t kMostRequests = 64;
  static constexpr size_t kMostProcesses = 4096;  // of all requests together

  bool empty() const { return requests_ == 0; }
  // False if there is no room for its owner, and `*request` is unchanged.
  bool Push(PendingRequest* request);
  // Returns a request for one process, or without processes as it was pushed. REQUIRES: not empty.
  PendingRequest Pop();
  void Clear();

 private:
  struct Waiting {
    PendingRequest request;
    size_t taken = 0;  // of its processes
  };
  struct Line {
    std::deque<Waiting> requests;
    size_t processes = 0;  // of all of them
  };

  bool HasRoomFor(const PendingRequest& request) const;

  std::map<int64_t, Line> waiting_;  // by owner; none is empty
  int64_t last_owner_ = INT64_MAX;
  size_t requests_ = 0;
  size_t processes_ = 0;
};

// Returns the processes of a request: one more than the queue holds at most, so that it refuses the
// request. The rest has no answer: a daemon could ask for millions.
std::vector<ProcessId> ProcessesIn(const google::protobuf::RepeatedPtrField<v1::ProcessRef>& refs);

}  // namespace rollcall
