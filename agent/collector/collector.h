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
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "agent/collector/collected_process.h"
#include "agent/collector/fault_log.h"
#include "agent/collector/host_scan.h"
#include "agent/processes/folder_watch.h"
#include "agent/processes/process_watch.h"
#include "agent/processes/spare_threads.h"
#include "agent/segments/segment_reader.h"
#include "base/mutex.h"
#include "rollcall/v1/agent.pb.h"
#include "security/harmless_arguments.h"
#include "security/redact.h"

namespace rollcall {

// A host has at most some hundred processes that use NCCL. Each segment keeps a descriptor open.
inline constexpr size_t kMostSegments = 4096;
// Of what is read from all segments. The 512 records of a communicator take 80 KiB.
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
  int64_t keep_ended_ns = 0;  // age at which segments of ended processes are deleted; 0: never
  std::string tenant;         // of processes that name none; "": the daemon decides
  std::string stacks_off;     // what has switched off the stacks of all processes; "": nothing
  std::shared_ptr<const Redactor> redactor = DefaultRedactor();  // for all that is reported
  SendArguments send_arguments = SendArguments::kListed;         // of command lines
  int64_t scan_wait_ns = 5'000'000;  // longest time that a tick waits for a scan of the processes
  int64_t least_read_wait_ns = 0;    // for tests: as SpareThreads()
  // Not 0: the ticks have the processes of this job, asked for each process and tick; "": the
  // process names none. When the number for a process changes, the tick is whole. Empty: they have
  // all.
  std::function<uint64_t(const std::string& tenant, const std::string& job)> takes;
  // Of processes that the collector knows at a time. It leaves out and counts the segments beyond
  // these limits, and takes them when there is room.
  size_t most_segments = kMostSegments;
  size_t most_segment_bytes = kMostSegmentBytes;
  // All users share it evenly; the newest records of each communicator are in the tick.
  size_t most_records_of_tick = kMostRecordsOfTick;
  // Ended processes that are kept. The first to go is the oldest one of whoever has most.
  size_t most_ended = kMostEnded;
};

// The segment of a process that the collector serves.
struct ServedSegment {
  std::shared_ptr<SegmentReader> reader;  // nullptr: it has none, or is not served
  int64_t ahead_ns = 0;                   // of its CLOCK_MONOTONIC over the agent's
};

class Collector {
 public:
  explicit Collector(CollectorOptions options);
  ~Collector();

  // Returns all changes since the last call, or the complete state if `whole` or
  // CollectorOptions::takes asks for it; the tick says which. `now_ns` and all times in the tick
  // are on the steady clock (base/steady_clock.h); offline, on the wall clock.
  v1::Tick Collect(int64_t now_ns, bool whole);
  // The same, into an empty tick.
  void Collect(int64_t now_ns, bool whole, v1::Tick* tick);

  // Sets the earliest start of any wait in the following ticks: see wait_floor.h.
  void SetWaitFloor(int64_t from_ns) { wait_floor_ns_ = from_ns; }

  // Limits the records of a communicator in whole ticks to the newest; 0: all that its segment has.
  void SetWholeRecords(uint32_t most) { whole_records_ = most; }

  // Returns the warnings since the last call: unreadable files and omitted parts.
  std::vector<std::string> TakeWarnings();

  // The ranks of this host that run without the library, as the newest scan shows them. Reads
  // nothing.
  v1::UnrecordedProcesses ListUnrecorded() const;

  // Whether a part of what there is to report was not in the last tick, because a read took too
  // long or the owner of a new segment is not known yet. The next tick may have it.
  bool IsBehind() const;

  bool seen_communicators() const { return seen_communicators_; }

  // Whether a tick since ForgetReported() has named the process and this agent's /proc shows it.
  // Thread-safe.
  bool Serves(ProcessId process) const;
  bool ServesPid(pid_t pid) const;  // a process with this pid
  std::vector<pid_t> ServedPids() const;
  // Its reader's Read() is the collector's own: others use what does not change the reader.
  // Thread-safe.
  ServedSegment SegmentOf(ProcessId process) const;
  // Before ticks for another stream, which begin with a whole one. Thread-safe.
  void ForgetReported();

 private:
  struct OpenAttempt {
    int64_t first_ns = 0;
    int64_t again_ns = 0;      // time of the next attempt; INT64_MAX: no more attempts
    bool is_left_out = false;  // there was no room
  };

  void ScanHost(int64_t now_ns);
  int64_t ReadLoadedTime() const;
  bool MustListDirectory(int64_t now_ns);
  void ForgetRemovedFiles(const std::vector<std::string>& names);
  void ListDirectory(int64_t now_ns);
  bool IsNew(const std::string& name, int64_t now_ns) const;
  bool IsDeleted(const std::string& name, const std::shared_ptr<SegmentReader>& reader) const;
  void OpenSegment(const std::string& name, int64_t now_ns);
  // `payer`: of the file.
  void RetryOrGiveUp(const std::string& name, int64_t now_ns, const absl::Status& why,
                     int64_t payer);
  bool HasRoomFor(ProcessId id, size_t bytes, std::optional<int64_t> payer) const;
  void LeaveOut(const std::string& name, int64_t now_ns);
  size_t CountLeftOut() const;
  void SettleNewFiles(int64_t now_ns);
  SegmentOwner FindSegmentOwner(const NewSegment& file, const SegmentClaim& claim) const;
  void AddHostSegments(const ScanResult& scan, int64_t now_ns);
  bool AddSegment(const SegmentOwner& owner, const SegmentClaim& claim,
                  std::shared_ptr<SegmentReader> reader, const std::string& file, int64_t now_ns);
  void ReadLaunch(int64_t now_ns, CollectedProcess* process) const;
  void AddProcessesWithoutSegment(const ScanResult& scan);
  void MarkEnded(int64_t now_ns);
  bool ChooseProcesses();
  bool CollectProcess(int64_t now_ns, bool whole, CollectedProcess* process,
                      v1::ProcessUpdate* update);
  void SetOwnFacts(v1::Identity* identity) const;
  void SetIdentity(const SegmentSnapshot& snapshot, CollectedProcess* process) const;
  static bool CollectSites(bool whole, const SegmentSnapshot& snapshot, CollectedProcess* process,
                           v1::ProcessUpdate* update);
  absl::StatusOr<SegmentSnapshot> ReadSegment(bool whole, CollectedProcess* process);
  absl::StatusOr<SegmentSnapshot> ReadFile(CollectedProcess* process);
  bool CollectComm(int64_t now_ns, bool whole, const SegmentSnapshot& snapshot,
                   const CommSnapshot& comm, size_t most_records, CollectedProcess* process,
                   v1::CommUpdate* update);
  void ReadEvidence(int64_t now_ns, const SegmentSnapshot* snapshot, CollectedProcess* process,
                    v1::Evidence* evidence);
  static v1::Evidence::Liveness EndLiveness(const CollectedProcess& process);
  void ReadProc(int64_t now_ns, CollectedProcess* process) const;
  void ReportProcess(int64_t now_ns, CollectedProcess* process, v1::Evidence* evidence) const;
  void KeepLoopsThatWait(int64_t now_ns, CollectedProcess* process,
                         SegmentSnapshot* snapshot) const;
  std::map<uint32_t, CpuUse> ReadCpuUses(int64_t now_ns, const std::vector<uint32_t>& tids,
                                         CollectedProcess* process) const;
  void RemoveCallsOfEndedThreads(int64_t now_ns, CollectedProcess* process,
                                 SegmentSnapshot* snapshot) const;
  void CheckCallers(int64_t now_ns, const SegmentSnapshot& snapshot,
                    CollectedProcess* process) const;
  void ReportBlocked(int64_t now_ns, const SegmentSnapshot& snapshot, CollectedProcess* process,
                     v1::Evidence* evidence) const;
  void ReadCallers(int64_t now_ns, CollectedProcess* process) const;
  void ReportCallers(int64_t now_ns, CollectedProcess* process, v1::Evidence* evidence) const;
  int32_t TranslateThread(int64_t now_ns, uint32_t own_tid, CollectedProcess* process) const;
  int64_t WaitFloorNs(const CollectedProcess& process) const;
  void RemoveEndedProcesses(int64_t now_ns);
  void ForgetEndedBeyondShare();
  void Forget(ProcessId id);
  void ShareRecords();
  size_t RecordsOfEach(const SegmentSnapshot& snapshot, const CollectedProcess& process);
  bool DeleteFile(const CollectedProcess& process);

  const CollectorOptions options_;
  std::shared_ptr<SpareThreads> threads_;
  std::unique_ptr<ProcessWatch> watch_;
  std::unique_ptr<HostScan> scan_;
  std::unique_ptr<HostClock> clock_;  // nullptr: offline
  uint64_t own_namespace_ = 0;
  std::map<ProcessId, std::unique_ptr<CollectedProcess>> processes_;
  std::unique_ptr<FolderWatch> folder_watch_;      // nullptr: none is open
  int64_t listed_ns_ = 0;                          // time of the last list of the folder
  std::map<std::string, ProcessId> segments_;      // file name -> process
  std::map<std::string, NewSegment> new_files_;    // file name -> segment without a process so far
  std::map<std::string, OpenAttempt> unreadable_;  // file name -> attempts to open it
  // Those of the newest scan without room, and the time of the next attempt to take their segments.
  std::map<ProcessId, int64_t> host_left_out_;
  uint64_t used_scan_ = 0;  // number of the newest scan that was used
  FaultLog faults_;
  int64_t scanned_loaded_ns_ = 0;         // ReadLoadedTime() before the last scan
  int64_t directory_stuck_since_ns_ = 0;  // 0: the last listing came back in time
  int64_t wait_floor_ns_ = 0;
  uint32_t whole_records_ = 0;
  // What is left of the records of this tick for each user, and of that user's processes.
  struct RecordsLeft {
    size_t records = 0;
    size_t processes = 0;
  };
  std::map<int64_t, RecordsLeft> records_left_;
  bool seen_communicators_ = false;

  mutable Mutex served_mutex_;
  std::map<ProcessId, ServedSegment> served_ ABSL_GUARDED_BY(served_mutex_);
};

}  // namespace rollcall
