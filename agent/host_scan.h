// SPDX-License-Identifier: Apache-2.0
// Scans the processes of this host: which have mapped a segment, and which have inherited the
// library without one. On threads that can be spared, since reading a process's maps and
// environment waits where its memory is locked in the kernel. The scan leaves out a process that
// does not answer, names it, and goes on with the others.
//
// What has been read of a process is kept, until it executes another program.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "agent/processes/process_discovery.h"
#include "agent/processes/spare_threads.h"
#include "agent/segments/segment_owner.h"
#include "agent/segments/segment_reader.h"

namespace rollcall {

struct ScanOptions {
  std::string proc_root = "/proc";
  uid_t uid = 0;                    // whose processes, unless the whole host's
  bool whole_host = false;          // every user's whom the kernel lets see; opens their segments
  std::string discover_directory;   // the ROLLCALL_DIR of processes without a segment; "" for any
  int64_t read_timeout_ns = 300'000'000;  // for one process
};

// A segment that a process has mapped.
struct MappedSegment {
  SegmentMapper mapper;
  uint64_t device = 0, inode = 0;         // as /proc/PID/maps has them
  std::shared_ptr<SegmentReader> reader;  // of the whole host only; nullptr: it could not be opened
  SegmentClaim claim;                     // what it said when it was opened
};

struct ScanResult {
  uint64_t number = 0;  // of the scan, from 1
  std::vector<MappedSegment> segments;
  std::vector<DiscoveredProcess> launched;  // is_main is set
  std::vector<std::string> notes;           // for people: what is left out, and why

  // Those that have mapped this file.
  std::vector<SegmentMapper> FindMappers(uint64_t device, uint64_t inode) const;
};

class HostScan {
 public:
  HostScan(ScanOptions options, std::shared_ptr<SpareThreads> threads);
  ~HostScan();

  // Begins a scan if none is under way and the last one began `every_ns` ago; waits for it, but no
  // longer than `wait_ns`. `with_maps`: also of processes whose segments lie in a known directory.
  void Poll(int64_t now_ns, int64_t every_ns, bool with_maps, int64_t wait_ns);

  // How many have begun. What is seen before scan n begins is known to scan n.
  uint64_t begun() const { return begun_; }

  // The newest that is complete; nullptr: none is.
  std::shared_ptr<const ScanResult> newest() const;

 private:
  class Scanner;

  const std::shared_ptr<SpareThreads> threads_;
  const std::shared_ptr<Scanner> scanner_;  // shared with the scan that is under way
  uint64_t begun_ = 0;
  int64_t begun_ns_ = 0;
};

}  // namespace rollcall
