// SPDX-License-Identifier: Apache-2.0
// What /proc reports of one process, for the messages of agents.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

#include "agent/collector/poll_pace.h"
#include "agent/processes/launch_facts.h"
#include "agent/processes/proc_stat.h"
#include "rollcall/v1/agent.pb.h"

namespace rollcall {

struct ProcessReading {
  std::optional<ProcStat> stat;  // nullopt if /proc does not show the process
  bool traced = false;           // by another process
  bool own_stop = false;         // this process takes a stack, or has just taken one
  std::string wait_channel;
};

// May block: see spare_threads.h.
ProcessReading ReadFromProc(const std::string& proc_root, pid_t pid);

// How one process runs, by its newest readings. Pure.
class ProcessState {
 public:
  bool IsDue(int64_t now_ns) const;
  void Take(int64_t now_ns, const ProcessReading& reading);

  // Whether /proc did not show the process at the last reading. That does not prove its end.
  bool missing() const { return missing_; }
  int64_t had_memory_ns() const { return had_memory_ns_; }
  CpuUse cpu_use() const;
  void Report(v1::Evidence* evidence) const;

 private:
  bool missing_ = false;
  int64_t read_ns_ = 0;        // when it was read last; 0 if never
  int64_t had_memory_ns_ = 0;  // the last reading at which it still had its memory, or 0
  char state_ = '?';
  bool was_at_stop_ = false;  // another process held its main thread at the last reading
  uint64_t cpu_ticks_ = 0;
  bool cpu_moving_ = false;
  uint64_t resident_bytes_ = 0;
  bool traced_ = false;
  std::string wait_channel_;
};

// How the process with this start runs now, for messages about a process without a segment. May
// block likewise.
v1::Evidence EvidenceNow(const std::string& proc_root, pid_t pid, uint64_t start_time);

// How it was started and where it runs.
void SetLaunch(const LaunchFacts& facts, v1::Identity* identity);

}  // namespace rollcall
