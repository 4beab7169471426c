// Everything this host can tell about its training processes, as ticks for the
// daemon: what their segments say, what /proc says, and who has ended.
//
// Also used by `rollcall analyze`, on folders of segments whose processes are
// long gone (Options::live = false): then nothing is asked of this machine.
//
// One owner, one thread, which must be one that can be spared (see
// proc_evidence.h).
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "agent/process_watch.h"
#include "agent/segment_reader.h"
#include "rollcall/v1/agent.pb.h"

namespace rollcall {

struct CollectorOptions {
  std::string directory;  // where the segments are
  std::string proc_root = "/proc";
  std::string discover_directory;  // the ROLLCALL_DIR of processes without a segment; "" for any
  bool live = true;
  int64_t keep_ended_ns = 0;  // segments of ended processes are deleted after that; 0: never
};

class Collector {
 public:
  explicit Collector(CollectorOptions options);
  ~Collector();

  // What has changed since the last call; everything, if `whole`.
  v1::Tick Collect(int64_t now_ns, bool whole);

  // Files that could not be read, and parts left out, since the last call.
  std::vector<std::string> TakeNotes();

  bool seen_communicators() const { return seen_communicators_; }
  int64_t newest_ns() const { return newest_ns_; }  // the newest time stamp in any segment

 private:
  struct CommMemory;
  struct ProcessMemory;

  void FindSegments(int64_t now_ns);
  bool IsNew(const std::string& name) const;
  void Note(const std::string& what);
  void OpenSegment(const std::string& name, int64_t now_ns);
  void FindProcessesWithoutSegment(int64_t now_ns);
  void NoteEnded(int64_t now_ns);
  bool CollectProcess(int64_t now_ns, bool whole, ProcessMemory* process,
                      v1::ProcessUpdate* update);
  static bool CollectSites(bool whole, const SegmentSnapshot& snapshot, ProcessMemory* process,
                           v1::ProcessUpdate* update);
  absl::StatusOr<SegmentSnapshot> ReadSegment(bool whole, ProcessMemory* process);
  bool CollectComm(int64_t now_ns, bool whole, const SegmentSnapshot& snapshot,
                   const CommSnapshot& comm, ProcessMemory* process, v1::CommUpdate* update);
  void ReadEvidence(int64_t now_ns, const SegmentSnapshot* snapshot, ProcessMemory* process,
                    v1::Evidence* evidence);
  void ForgetOldProcesses(int64_t now_ns);

  const CollectorOptions options_;
  std::unique_ptr<ProcessWatch> watch_;
  std::map<ProcessId, std::unique_ptr<ProcessMemory>> processes_;
  std::map<std::string, ProcessId> segments_;    // file name -> process
  std::map<std::string, int64_t> not_readable_;  // file name -> first tried; -1: given up
  std::vector<std::string> notes_;
  std::set<std::string> noted_;  // what is wrong now is wrong with every tick: said once
  int64_t discovered_at_ns_ = 0;
  int64_t newest_ns_ = 0;
  bool seen_communicators_ = false;
};

}  // namespace rollcall
