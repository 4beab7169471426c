// SPDX-License-Identifier: Apache-2.0
// Everything this host knows about its training processes, as ticks for the
// daemon: what their segments say, what /proc says, and who has ended.
//
// Processes are named by the pid and start time that this agent's /proc shows,
// whatever they call themselves in namespaces of their own; those that cannot be
// seen from here, by their own numbers, and without stacks.
//
// Also used by `rollcall analyze`, on folders of segments whose processes are
// long gone (Options::live = false): then nothing is asked of this machine.
//
// One owner, one thread. What can block is done on threads of their own (spare_threads.h): all that
// is asked of /proc/PID and of the folder of segments. So a tick waits for no process and no
// server.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "agent/collected_process.h"
#include "agent/host_scan.h"
#include "agent/processes/process_watch.h"
#include "agent/processes/spare_threads.h"
#include "agent/segments/segment_reader.h"
#include "rollcall/v1/agent.pb.h"

namespace rollcall {

struct CollectorOptions {
  std::string directory;  // where the segments are
  std::string proc_root = "/proc";
  std::string discover_directory;  // the ROLLCALL_DIR of processes without a segment; "" for any
  bool live = true;
  // Also the processes of other users and namespaces, as far as the kernel lets them be seen, but
  // those that a `rollcall run` serves.
  bool whole_host = false;
  int64_t keep_ended_ns = 0;  // segments of ended processes are deleted after that; 0: never
  int64_t scan_wait_ns = 5'000'000;  // how long a tick waits for a scan of the processes
};

class Collector {
 public:
  explicit Collector(CollectorOptions options);
  ~Collector();

  // What has changed since the last call; everything, if `whole`. Times are of the clock that
  // `now_ns` is of: the steady one (proto/steady_clock.h), unless all is offline.
  v1::Tick Collect(int64_t now_ns, bool whole);

  // No wait that it reports began before this: see wait_floor.h.
  void BeginWaitsAt(int64_t from_ns) { waits_from_ns_ = from_ns; }

  // Files that could not be read, and parts left out, since the last call.
  std::vector<std::string> TakeNotes();

  bool seen_communicators() const { return seen_communicators_; }
  int64_t newest_ns() const { return newest_ns_; }  // the newest time stamp in any segment

  // Whether it has reported the process and can see it from here. For any thread.
  bool Serves(ProcessId process) const;

 private:
  struct Tried {
    int64_t first_ns = 0;
    int64_t again_ns = 0;  // not before that; INT64_MAX: given up
  };

  void ScanHost(int64_t now_ns);
  void ListDirectory(int64_t now_ns);
  bool IsNew(const std::string& name, int64_t now_ns) const;
  bool IsDeleted(const std::string& name, const std::shared_ptr<SegmentReader>& reader) const;
  void AddNote(const std::string& what);
  void OpenSegment(const std::string& name, int64_t now_ns);
  void GiveUpLater(const std::string& name, int64_t now_ns, absl::Status why);
  void SettleNewFiles(int64_t now_ns);
  SegmentOwner FindSegmentOwner(const NewSegment& file, const SegmentClaim& claim) const;
  void AddHostSegments(const ScanResult& scan, int64_t now_ns);
  void AddSegment(const SegmentOwner& owner, const SegmentClaim& claim,
                  std::shared_ptr<SegmentReader> reader, const std::string& file, int64_t now_ns);
  void AddProcessesWithoutSegment(const ScanResult& scan);
  void MarkEnded(int64_t now_ns);
  bool CollectProcess(int64_t now_ns, bool whole, CollectedProcess* process,
                      v1::ProcessUpdate* update);
  void SetIdentity(const SegmentSnapshot& snapshot, CollectedProcess* process) const;
  static bool CollectSites(bool whole, const SegmentSnapshot& snapshot, CollectedProcess* process,
                           v1::ProcessUpdate* update);
  absl::StatusOr<SegmentSnapshot> ReadSegment(bool whole, CollectedProcess* process);
  absl::StatusOr<SegmentSnapshot> ReadFile(CollectedProcess* process);
  bool CollectComm(int64_t now_ns, bool whole, const SegmentSnapshot& snapshot,
                   const CommSnapshot& comm, CollectedProcess* process, v1::CommUpdate* update);
  void ReadEvidence(int64_t now_ns, const SegmentSnapshot* snapshot, CollectedProcess* process,
                    v1::Evidence* evidence);
  static v1::Evidence::Liveness HowItEnded(const CollectedProcess& process);
  void ReadProcess(int64_t now_ns, CollectedProcess* process, v1::Evidence* evidence) const;
  void LeaveOutCallsOfEndedThreads(int64_t now_ns, CollectedProcess* process,
                                   SegmentSnapshot* snapshot) const;
  void CheckCallers(int64_t now_ns, const SegmentSnapshot& snapshot,
                    CollectedProcess* process) const;
  void ReportBlocked(int64_t now_ns, const SegmentSnapshot& snapshot, CollectedProcess* process,
                     v1::Evidence* evidence) const;
  int32_t TranslateThread(int64_t now_ns, uint32_t own_tid, CollectedProcess* process) const;
  int64_t WaitsFrom(const CollectedProcess& process) const;
  void ForgetOldProcesses(int64_t now_ns);
  bool DeleteFile(const CollectedProcess& process);

  const CollectorOptions options_;
  std::shared_ptr<SpareThreads> threads_;
  std::unique_ptr<ProcessWatch> watch_;
  std::unique_ptr<HostScan> scan_;
  std::unique_ptr<HostClock> clock_;  // while live
  uint64_t own_namespace_ = 0;
  std::map<ProcessId, std::unique_ptr<CollectedProcess>> processes_;
  std::map<std::string, ProcessId> segments_;    // file name -> process
  std::map<std::string, NewSegment> new_files_;  // file name -> whose process is not known yet
  std::map<std::string, Tried> not_readable_;    // file name -> when it was tried
  uint64_t used_scan_ = 0;                       // number of the newest scan that was used
  std::vector<std::string> notes_;
  int64_t directory_stuck_since_ns_ = 0;  // 0: it answers
  std::set<std::string> notes_given_;     // what is wrong now is wrong with every tick: said once
  int64_t waits_from_ns_ = 0;
  int64_t newest_ns_ = 0;
  bool seen_communicators_ = false;

  mutable absl::Mutex served_mutex_;
  std::set<ProcessId> served_ ABSL_GUARDED_BY(served_mutex_);
};

}  // namespace rollcall
