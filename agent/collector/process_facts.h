// SPDX-License-Identifier: Apache-2.0
// What /proc says of one process, for the messages of agents.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

#include "agent/processes/launch_facts.h"
#include "agent/processes/proc_stat.h"
#include "rollcall/v1/agent.pb.h"

namespace rollcall {

struct ProcessReading {
  std::optional<ProcStat> stat;  // nullopt: /proc does not show the process
  bool traced = false;           // by another process
  bool own_stop = false;         // this process takes a stack, or has just taken one
  std::string wait_channel;
};

// May block: see spare_threads.h.
ProcessReading ReadFromProc(const std::string& proc_root, pid_t pid);

// How the process with this start runs now, for messages about a process without a segment. May
// block likewise.
v1::Evidence EvidenceNow(const std::string& proc_root, pid_t pid, uint64_t start_time);

// How it was started and where it runs.
void SetLaunch(const LaunchFacts& facts, v1::Identity* identity);

}  // namespace rollcall
