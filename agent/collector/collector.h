// SPDX-License-Identifier: Apache-2.0
// Collects the state of this host's training processes as ticks for the daemon: the contents of
// their segments, the fields of /proc, and the processes that have ended.
//
// A tick identifies a process by the pid and start time that this agent's /proc shows, even if the
// process has other numbers in its own namespaces. A process that this agent's /proc does not show
// has its own numbers in the tick, and no stacks.
//
// `rollcall analyze` uses the collector too, on folders of segments whose processes have ended
// (CollectorOptions::live = false). The collector then reads only these files.
//
// One owner, one thread. Every read of /proc/PID and of the segment folder can block, so the
// collector does these reads on spare threads (spare_threads.h). No tick waits for a process or
// for a file server.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "agent/collector/collector_options.h"
#include "agent/collector/fault_log.h"
#include "agent/collector/host_processes.h"
#include "agent/collector/record_shares.h"
#include "agent/collector/served_segments.h"
#include "rollcall/v1/agent.pb.h"

namespace rollcall {

class Collector {
 public:
  explicit Collector(CollectorOptions options);

  // Returns all changes since the last call, or the complete state if `whole` or
  // CollectorOptions::takes asks for it; the tick names them. `now_ns` and all times in the tick
  // are on the steady clock (base/steady_clock.h); offline, on the wall clock.
  v1::Tick Collect(int64_t now_ns, bool whole);
  // Does the same, into an empty tick.
  void Collect(int64_t now_ns, bool whole, v1::Tick* tick);

  // Sets the earliest start of any wait in the following ticks: see wait_floor.h.
  void SetWaitFloor(int64_t from_ns) { wait_floor_ns_ = from_ns; }

  // Limits the records of a communicator in whole ticks to the newest; 0 means all that its segment
  // has.
  void SetWholeRecords(uint32_t most) { whole_records_ = most; }

  // Returns the warnings since the last call: unreadable files and omitted parts.
  std::vector<std::string> TakeWarnings() { return faults_.Take(); }

  // The ranks of this host that run without the library, as the newest scan shows them. Reads
  // nothing.
  v1::UnrecordedProcesses ListUnrecorded() const { return host_.ListUnrecorded(); }

  // Whether a part of what there is to report was not in the last tick, because a read took too
  // long or the owner of a new segment is not known yet. The next tick may have it.
  bool IsBehind() const { return host_.IsBehind(); }

  bool seen_communicators() const { return seen_communicators_; }

  // The processes that this agent's /proc shows, and that a tick since served().Clear() has named.
  ServedSegments& served() { return served_; }

 private:
  bool ChooseProcesses();
  RecordShares ShareRecords();
  bool CollectProcess(int64_t now_ns, const TickScope& scope, CollectedProcess* process,
                      v1::ProcessUpdate* update);

  const CollectorOptions options_;
  FaultLog faults_;
  HostProcesses host_;
  ServedSegments served_;  // after `host_`, whose threads close the files
  int64_t wait_floor_ns_ = 0;
  uint32_t whole_records_ = 0;
  bool seen_communicators_ = false;
};

}  // namespace rollcall
