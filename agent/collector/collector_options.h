// SPDX-License-Identifier: Apache-2.0
// What a collector reads and reports.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "security/harmless_arguments.h"
#include "security/redact.h"

namespace rollcall {

// A host has at most some hundred processes that use NCCL. Each segment keeps a descriptor open.
inline constexpr size_t kMostSegments = 4096;
// Limits what is read from all segments. The 512 records of a communicator take 80 KiB.
inline constexpr size_t kMostSegmentBytes = size_t{1} << 30;
// Of the records in one tick, which the agent makes in memory: each takes 130 bytes.
inline constexpr size_t kMostRecordsOfTick = size_t{1} << 20;
inline constexpr size_t kMostEnded = 4096;

struct CollectorOptions {
  std::string directory;  // of the segments
  std::string proc_root = "/proc";
  std::string discover_directory;  // the ROLLCALL_DIR of processes without a segment; "" for any
  bool live = true;
  // Also collect processes of other users and namespaces, as far as the kernel permits, except the
  // processes that a `rollcall run` serves.
  bool whole_host = false;
  // With whole_host: also finds ranks that run without the library, for ListUnrecorded().
  bool find_unrecorded = false;
  int64_t keep_ended_ns = 0;  // age at which segments of ended processes are deleted; 0 if never
  std::string tenant;         // of processes that name none; empty means the daemon decides
  std::string stacks_off;     // what has switched off the stacks of all processes, or empty
  std::shared_ptr<const Redactor> redactor = DefaultRedactor();  // for all that is reported
  SendArguments send_arguments = SendArguments::kListed;         // of command lines
  int64_t scan_wait_ns = 5'000'000;  // longest time that a tick waits for a scan of the processes
  int64_t least_read_wait_ns = 0;    // for tests: as SpareThreads()
  // Nonzero if the ticks have the processes of this job, asked for each process and tick; the job
  // is empty if the process names none. When the number for a process changes, the tick is whole.
  // If empty, the ticks have all processes.
  std::function<uint64_t(const std::string& tenant, const std::string& job)> takes;
  // Limits the processes that the collector follows at a time. It leaves out and counts the
  // segments beyond these limits, and takes them when there is room.
  size_t most_segments = kMostSegments;
  size_t most_segment_bytes = kMostSegmentBytes;
  // All users share it evenly; the newest records of each communicator are in the tick.
  size_t most_records_of_tick = kMostRecordsOfTick;
  // Ended processes that are kept. The first to go is the oldest one of the owner that has most.
  size_t most_ended = kMostEnded;
};

}  // namespace rollcall
