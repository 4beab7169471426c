// SPDX-License-Identifier: Apache-2.0
// Makes the updates of one process for the ticks: keeps what it has sent, and sends what has
// changed since.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

#include "agent/collector/blocked_calls.h"
#include "agent/collector/callers.h"
#include "agent/collector/collected_segment.h"
#include "agent/collector/comm_update.h"
#include "agent/collector/fault_log.h"
#include "agent/collector/process_facts.h"
#include "agent/collector/process_reads.h"
#include "agent/collector/record_shares.h"
#include "agent/collector/reported_identity.h"
#include "agent/segments/tick_clock.h"
#include "rollcall/v1/agent.pb.h"

namespace rollcall {

// A tick in the making.
struct TickScope {
  bool whole = false;                // all that is known, not only changes
  uint32_t whole_records = 0;        // of a communicator in a whole tick; 0 means no limit
  int64_t wait_floor_ns = 0;         // no wait starts before it
  const HostClock* clock = nullptr;  // as SegmentReader::Read()
  RecordShares* shares = nullptr;
  FaultLog* faults = nullptr;
};

class ProcessUpdates {
 public:
  // Reads how the process is now. False if nothing has changed.
  bool Collect(const TickScope& tick, const ProcessReads& reads, ReportedIdentity* identity,
               CollectedSegment* segment, v1::ProcessUpdate* update);

  bool has_sent() const { return !evidence_sent_.empty(); }
  bool has_communicators() const { return !comms_.empty(); }

 private:
  struct SentComm {
    uint64_t init_ticks = 0;  // a different value: the block serves another communicator
    CommHistory history;
    bool busy = false;  // the last tick had records
    std::string sent;   // serialized: the last update, without records; empty if not kept
  };

  bool CollectSegment(const TickScope& tick, const ProcessReads& reads,
                      const SegmentSnapshot& snapshot, v1::ProcessUpdate* update);
  bool CollectSites(bool whole, const SegmentSnapshot& snapshot, v1::ProcessUpdate* update);
  bool CollectComm(const TickScope& tick, const ProcessReads& reads,
                   const SegmentSnapshot& snapshot, const CommSnapshot& comm, size_t most_records,
                   v1::CommUpdate* update);
  v1::Evidence ReadEvidence(const TickScope& tick, const ProcessReads& reads,
                            const CollectedSegment& segment, const SegmentSnapshot* snapshot);
  void ReportLife(const ProcessReads& reads, bool is_stuck, v1::Evidence* evidence);

  ProcessState state_;
  ThreadNumbers numbers_;
  CallingThreads callers_;
  BlockedCalls blocked_;
  size_t sites_sent_ = 0;
  std::string evidence_sent_;
  std::map<uint32_t, SentComm> comms_;  // by their index in the segment
};

}  // namespace rollcall
