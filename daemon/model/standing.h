// SPDX-License-Identifier: Apache-2.0
// Where a process stands while nothing moves in it, by an unbroken row of samples of its stacks.
// Plain values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "daemon/model/stack_place.h"
#include "daemon/model/stand_kinds.h"

namespace rollcall {

// Where a thread stands, and what it waits in there: found once, for all judgements.
struct StandPlace : StackPlace {
  StandPlace() = default;
  // `wait_channel`: as for StandsIn().
  explicit StandPlace(StackPlace place, absl::string_view wait_channel = "");

  StandFunction in;
  bool is_idle = false;  // it waits for requests or work
};

inline constexpr size_t kMostStandThreads = 8;  // of a process, without the main one

struct StandThread {
  uint32_t tid = 0;
  std::string name;
  StandPlace place;
};

// A process that a rank has started, or one that such a process has started.
struct StandingChild {
  int32_t pid = 0, parent = 0;
  std::string name;                // as in /proc
  std::vector<StandPlace> places;  // of its threads that are in the program, the main one first
  bool own_session = false;        // the first process of a session, as services are
  bool hides_a_wait = false;       // a further thread waits for something else than a lock
  char state = '?';                // of its main thread, as in /proc
};

// The sockets of a process that its libraries watch for its other threads, or that it waits at.
struct StandingSockets {
  bool known = false;           // a thread watches some
  bool listens = false;         // also where no peer is connected
  double received_bytes = 0;    // so far
  std::vector<int32_t> with;    // processes of its host at the other ends, by pid
  std::vector<int32_t> called;  // processes of its host that have accepted its connections
};

// A file that the process has locked, or that it or its child waits to lock.
struct FileLockSeen {
  uint64_t inode = 0;
  std::string path;    // empty if unknown
  int32_t holder = 0;  // pid; 0 if unknown
  bool waits = false;
  uint64_t first = 0, last = UINT64_MAX;  // its bytes, both ends included
  int32_t child = 0;                      // pid of the child that waits; 0: the process itself
};

// What the next sample is compared with.
struct StandingMarks {
  struct Thread {
    uint64_t position = 0;  // a digest of its frames
    uint64_t switches = 0;  // how often it has slept or lost the CPU; 0 if unknown
  };
  int64_t at_ns = 0;
  double cpu_seconds = 0;           // of the process
  double children_cpu_seconds = 0;  // of those that it has started
  double moved_bytes = 0;           // that they have read and written; negative: not known
  std::map<std::pair<int32_t, int32_t>, Thread> threads;  // by pid and tid
  std::set<std::pair<int32_t, int32_t>> unseen;           // threads of which no frames were taken
  std::map<int32_t, double> others_cpu_seconds;           // of Standing::others, by pid
};

struct Standing {
  int64_t since_ns = 0;   // the first sample of the row
  int64_t newest_ns = 0;  // the newest one
  int32_t samples = 0;    // of the row
  // It wakes from time to time, and returns to where it stood: a step that takes long looks like
  // this, and so does a loop that asks seldom.
  bool rests = false;
  // It uses the CPU, and only to ask again and again for what it waits for: MPI and CUDA do so.
  bool spins = false;
  char state = '?';  // of the main thread, as in /proc
  std::string wait_channel;
  StandPlace place;
  std::vector<StandThread> threads;  // that are in the program, `place` excepted
  bool has_server = false;           // a thread beside the main one waits for requests
  std::vector<StandingChild> children;
  std::vector<StandingChild> others;  // at other ends, neither children nor ranks
  std::vector<FileLockSeen> locks;
  StandingSockets sockets;
  std::map<int32_t, std::string> names;  // of processes at other ends, by pid
  StandingMarks first, newest;
};

// What the main thread of the process waits in.
StandFunction WaitOfMain(const Standing& standing);

// Whether a library that waits may be why the process uses the CPU.
bool WaitsWithTheCpu(const Standing& standing);

// The thread of the process that handles a request in the program; nullptr if none does.
const StandThread* FindHandler(const Standing& standing);

// The thread handles a request, and waits in it for what is no work.
bool IsHeldUpInARequest(const StandPlace& place);

// Of a server that a rank has started: such a thread; nullptr if there is none, or its main thread
// waits for no requests.
const StandPlace* FindHandler(const StandingChild& child);

}  // namespace rollcall
