// SPDX-License-Identifier: Apache-2.0
// Reads what /proc shows of the processes of this host, as far as it shows whether they are ranks
// of distributed jobs. ranks.h chooses among them.
//
// A host may have thousands of processes, and be busy: the named processes and their relatives are
// read first, then those with the variables of a rank. The maps of a process are long. They are
// read only where they can show a rank, or what a rank uses.
//
// Processes are read on spare threads, because nearly all files of /proc/PID may block: one that
// does not answer in time is named (read_each.h).
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/collector/job_marks.h"
#include "agent/processes/process_discovery.h"
#include "agent/processes/spare_threads.h"

namespace rollcall {

struct FoundProcess {
  DiscoveredProcess process;  // without launch and is_main
  char state = '?';
  int64_t uid = -1;         // -1 if unknown
  bool is_readable = true;  // false: the kernel does not show its environment
  bool preloads = false;    // it has inherited Rollcall's library
  std::string command;      // as in /proc/PID/cmdline
  std::vector<Mark> marks;
  std::vector<std::string> libraries;  // each once
  bool talks = false;                  // has threads of a library by which ranks talk
  std::vector<pid_t> connected;        // other processes here with which it talks by TCP, ascending
  int32_t local_world_size = 0;        // of its job on this host; 0 if unknown
  std::string ras_address, dump_pipe;  // as in v1::ProcessLook
  int wait_status = 0;                 // of a zombie, as in ProcStat
};

struct FindOptions {
  std::string proc_root = "/proc";
  std::optional<uid_t> uid;             // nullopt means all users'
  std::vector<pid_t> pids;              // these besides, of any user
  int64_t patience_ns = 2'000'000'000;  // for all; the relatives of `pids` have as much again
};

struct FoundProcesses {
  std::vector<FoundProcess> processes;  // by pid
  std::vector<pid_t> silent;            // did not answer in time; ascending
  bool is_cut = false;                  // the time was over before all were read
  // The environments of all were read, whatever is silent or left out of their maps: no rank that a
  // variable numbers was missed.
  bool has_all_variables = false;
};

FoundProcesses FindProcesses(const FindOptions& options, SpareThreads* threads);

}  // namespace rollcall
