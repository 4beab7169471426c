// SPDX-License-Identifier: Apache-2.0
// Scans the processes of this host for processes that have mapped a segment and for processes that
// have inherited the library but have no segment.
//
// The scan runs on spare threads, because reading a process's maps and environment blocks while the
// kernel holds the lock of its memory. If such a read times out, the scan skips the process,
// reports its name, and continues with the others.
//
// The scan reads a process once and keeps the result until the process executes another program. A
// host may have thousands of processes that will never use NCCL: a scan reads only a tenth of the
// old ones, to find out whether they execute another program or load the library as a plugin.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "agent/collector/unrecorded.h"
#include "agent/processes/process_discovery.h"
#include "agent/processes/spare_threads.h"
#include "agent/segments/segment_owner.h"
#include "agent/segments/segment_reader.h"

namespace rollcall {

struct ScanOptions {
  std::string proc_root = "/proc";
  uid_t uid = 0;                   // scan processes of this user, unless whole_host
  bool whole_host = false;         // scan all users; open their segments
  std::string discover_directory;  // the ROLLCALL_DIR of processes without a segment; "" for any
  int64_t read_timeout_ns = 300'000'000;  // for one process
  // For all processes of one user in one scan, after the first scan: the others do not wait for a
  // user with very many, or with long maps. What is left out comes in the next scans.
  int64_t user_share_ns = 2'000'000'000;
  // Processes of one user that have inherited the library and have no segment. Each costs the agent
  // memory and a descriptor. The others are left out.
  size_t most_launched_of_user = 1024;
  // Also finds ranks without the library. Of one user so many at most.
  bool find_unrecorded = false;
  size_t most_unrecorded_of_user = 1024;
};

// A segment that a process has mapped.
struct MappedSegment {
  SegmentMapper mapper;
  uint64_t device = 0, inode = 0;         // as in /proc/PID/maps
  std::shared_ptr<SegmentReader> reader;  // with whole_host only; nullptr if it could not be opened
  SegmentClaim claim;                     // as of the time it was opened
};

// For people: a part left out, and the reason.
struct ScanFault {
  std::string text;
  int64_t user = SpareThreads::kNobody;  // whose processes these are: PayerOfReads()
};

struct ScanResult {
  uint64_t number = 0;  // of the scan, from 1
  std::vector<MappedSegment> segments;
  std::vector<DiscoveredProcess> launched;  // is_main is set
  // The main process of each rank that runs without the library, and has no relative that runs with
  // it: a launcher, or a helper. Those without a variable for their rank are found later than
  // others (mesh_search.h).
  std::vector<UnrecordedRank> unrecorded;
  size_t unrecorded_left_out = 0;  // processes beyond the limit
  std::vector<ScanFault> faults;

  // Returns the processes that have mapped this file.
  std::vector<SegmentMapper> FindMappers(uint64_t device, uint64_t inode) const;
};

// The processes whose maps a scan reads, to find their segments.
enum class MapsToRead {
  kNone,
  kChanged,  // new processes, and those that have mapped as much memory as a segment takes
  kAll,      // and those that have the library and no segment
};

class HostScan {
 public:
  HostScan(ScanOptions options, std::shared_ptr<SpareThreads> threads);
  ~HostScan();

  // Starts a scan if none is running and the last one started at least `every_ns` ago, then waits
  // for the scan for at most `wait_ns`.
  void Poll(int64_t now_ns, int64_t every_ns, MapsToRead maps, int64_t wait_ns);

  // Number of scans that have started. Scan n covers every process that existed before it started.
  uint64_t begun() const { return begun_; }

  // Returns the newest complete scan; nullptr if none is complete.
  std::shared_ptr<const ScanResult> newest() const;

 private:
  class Scanner;

  const std::shared_ptr<SpareThreads> threads_;
  const std::shared_ptr<Scanner> scanner_;  // shared with the running scan
  uint64_t begun_ = 0;
  int64_t begun_ns_ = 0;
};

}  // namespace rollcall
