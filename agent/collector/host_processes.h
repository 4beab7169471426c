// SPDX-License-Identifier: Apache-2.0
// The processes of this host that the collector follows: found by the segments in the folder and by
// scans of the host's processes, watched until they end, and forgotten after a while.
//
// One owner, one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/collector/collected_segment.h"
#include "agent/collector/collector_options.h"
#include "agent/collector/fault_log.h"
#include "agent/collector/host_scan.h"
#include "agent/collector/process_reads.h"
#include "agent/collector/process_updates.h"
#include "agent/collector/reported_identity.h"
#include "agent/collector/segment_files.h"
#include "agent/processes/process_watch.h"
#include "agent/processes/spare_threads.h"
#include "agent/segments/segment_owner.h"
#include "agent/segments/tick_clock.h"
#include "rollcall/v1/agent.pb.h"

namespace rollcall {

struct CollectedProcess {
  SeenProcess seen;
  ReportedIdentity identity;
  CollectedSegment segment;
  ProcessUpdates updates;
  // By CollectorOptions::takes in the last tick; nullopt if not asked so far.
  std::optional<uint64_t> turn;
};

class HostProcesses {
 public:
  // Both outlive this object.
  HostProcesses(const CollectorOptions& options, FaultLog* faults);
  ~HostProcesses();
  HostProcesses(const HostProcesses&) = delete;
  HostProcesses& operator=(const HostProcesses&) = delete;

  // Looks for new processes, and which have ended.
  void Look(int64_t now_ns);
  // Forgets processes that have ended long ago, with their files, and the oldest beyond the limit.
  // Returns them.
  std::vector<ProcessId> ForgetEnded(int64_t now_ns);

  std::map<ProcessId, CollectedProcess>& all() { return processes_; }
  ProcessReads ReadsOf(int64_t now_ns, const CollectedProcess& process) const;
  const HostClock* clock() const { return clock_.get(); }  // nullptr if offline

  size_t CountLeftOut() const;  // segments without room
  bool IsBehind() const { return folder_.IsBehind(); }
  // The ranks that run without the library, as the newest scan shows them. Reads nothing.
  v1::UnrecordedProcesses ListUnrecorded() const;

 private:
  int64_t ReadLoadedTime() const;
  void Scan(int64_t now_ns);
  void SettleNewFiles(int64_t now_ns);
  SegmentOwner FindSegmentOwner(const NewSegment& file) const;
  void AddHostSegments(const ScanResult& scan, int64_t now_ns);
  bool AddSegment(const SegmentOwner& owner, CollectedSegment segment, int64_t now_ns);
  bool NamesKnownSegment(const SegmentOwner& owner, const CollectedSegment& segment,
                         CollectedProcess* known);
  void ReadView(int64_t now_ns, CollectedProcess* process) const;
  bool HasRoomFor(ProcessId id, size_t bytes, int64_t payer) const;
  void AddProcessesWithoutSegment(const ScanResult& scan);
  v1::Identity OwnFacts() const;
  void MarkEnded(int64_t now_ns);
  bool Forget(ProcessId id);
  void ForgetBeyondLimit(std::vector<ProcessId>* forgotten);

  const CollectorOptions& options_;
  FaultLog* const faults_;
  const std::shared_ptr<SpareThreads> threads_;  // nullptr if offline, like the next three
  const std::unique_ptr<HostClock> clock_;
  const std::unique_ptr<ProcessWatch> watch_;
  const std::unique_ptr<HostScan> scan_;
  const uint64_t own_namespace_;
  std::map<ProcessId, CollectedProcess> processes_;
  SegmentFiles folder_;
  // Those of the newest scan without room, and the time of the next attempt to take their segments.
  std::map<ProcessId, int64_t> host_left_out_;
  uint64_t used_scan_ = 0;         // number of the newest scan that was used
  int64_t scanned_loaded_ns_ = 0;  // ReadLoadedTime() before the last scan
};

}  // namespace rollcall
