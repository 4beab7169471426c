// SPDX-License-Identifier: Apache-2.0
// The waits outside of recorded calls between ranks, the processes that they have started, and
// others at the ends of their pipes, sockets and locks. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "daemon/model/job_state.h"
#include "daemon/model/stand_kinds.h"

namespace rollcall {

struct StandNode {
  // The rank's, as an index; of a child, that of its rank; -1 if it belongs to no rank.
  int32_t process = -1;
  int32_t rank = -1;  // of `process`
  bool is_child = false;
  int32_t pid = 0;
  std::string name;                    // of its program, as in /proc; empty if unknown
  StandFunction in;                    // what it waits in
  std::string at, inside;              // its line, and what that called, as in StackPlace
  uint64_t position = 0;               // a digest of the program's lines on its stack; 0 if unknown
  std::string on;                      // the file that it waits to lock; empty if unknown
  bool is_idle = false;                // waits for work
  bool is_seen = false;                // its stack is known
  bool is_by_thread = false;           // its main thread waits for no known node, another one does
  const StandPlace* place = nullptr;   // of the thread that counts; nullptr if unknown
  const Standing* standing = nullptr;  // of a rank
  const StandingChild* child = nullptr;  // of a child, and of one of no rank that was seen
  std::vector<size_t> waits_for;         // nodes
};

struct StandGraph {
  std::vector<StandNode> nodes;                 // those of `ranks` first, in this order
  std::vector<std::vector<size_t>> components;  // as FindComponents()
  std::vector<size_t> component_of;             // by node
};

// `ranks`: processes with a Standing, one for each rank, as indices. `is_look`: Limits::is_look. In
// a look no calls are recorded: a rank that asks again and again whether a call of gloo is done
// waits in that call.
StandGraph BuildStandGraph(const JobState& job, const std::vector<int32_t>& ranks, bool is_look);

// Whether the main thread of the process has woken again and again, and is where it was.
bool Polls(const Standing& standing, int32_t pid);

}  // namespace rollcall
