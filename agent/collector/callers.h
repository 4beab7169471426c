// SPDX-License-Identifier: Apache-2.0
// The threads of one process: their numbers, and which of them make its calls. Two threads on one
// communicator have no order of their own, and a rank stands where the thread stands that makes its
// calls.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "agent/collector/process_reads.h"
#include "agent/segments/segment_snapshot.h"
#include "rollcall/v1/agent.pb.h"

namespace rollcall {

// The numbers that the threads have in this agent's /proc.
class ThreadNumbers {
 public:
  // Translates the tid that a thread has in its own pid namespace. 0 if /proc does not show it.
  int32_t Translate(uint32_t own_tid, const ProcessReads& reads);

 private:
  std::map<pid_t, pid_t> tids_;  // by the tid in its own namespace, where they differ
  int64_t read_ns_ = 0;          // 0 if never
};

class CallingThreads {
 public:
  // Adds the threads of the records that are not known yet. A process that starts a thread for each
  // call has more than anybody can look at: the oldest go, but for the first one.
  void Note(const std::vector<RecordSnapshot>& records);

  // Adds them to `evidence`, unless the main thread alone makes the calls.
  void Report(const ProcessReads& reads, ThreadNumbers* numbers, v1::Evidence* evidence);

 private:
  struct Caller {
    uint32_t own_tid = 0;  // in its own pid namespace
    int32_t tid = 0;       // in the agent's; 0 if unknown
    std::string name;
    bool was_read = false;  // /proc has been asked for the name
  };

  void ReadNames(const ProcessReads& reads, ThreadNumbers* numbers);

  std::vector<Caller> callers_;  // the newest last
};

}  // namespace rollcall
