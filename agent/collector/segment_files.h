// SPDX-License-Identifier: Apache-2.0
// The segment files of one folder: finds them, opens each once, tries those again that are not
// complete yet, and deletes those of ended processes.
//
// The folder may be on a file server that does not answer, so all of it is read on spare threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "agent/collector/fault_log.h"
#include "agent/processes/folder_watch.h"
#include "agent/processes/spare_threads.h"
#include "agent/segments/segment_owner.h"
#include "agent/segments/segment_reader.h"

namespace rollcall {

// A segment file of the folder, before the collector has found its process.
struct NewSegment {
  std::shared_ptr<SegmentReader> reader;
  SegmentClaim claim;
  uint64_t settled_by = 0;  // this scan lists every process that has mapped the file
};

class SegmentFiles {
 public:
  struct Options {
    std::string path;
    bool skips_runs = false;  // leaves the folder of a `rollcall run` to that run
    std::string when_full;    // what to log about the segments for which there is no room
  };

  // `threads`: nullptr if the caller may block, and reads files of ended processes only. `faults`
  // outlives this object.
  SegmentFiles(Options options, std::shared_ptr<SpareThreads> threads, FaultLog* faults);

  // Lists the folder when it is time, and opens the new files: as many as there is room for.
  // `next_scan`: number of the next scan of the host's processes to begin. `has_room`: asked before
  // each file is opened. Returns true if it has opened any.
  bool Look(int64_t now_ns, uint64_t next_scan, const std::function<bool()>& has_room);

  // The open files of which the process is not known, by name. The caller takes them.
  std::map<std::string, NewSegment>* waiting() { return &waiting_; }
  size_t CountWaiting() const { return waiting_.size(); }

  // The process of the file is known, and has this reader now.
  void SetKnown(const std::string& name, const std::shared_ptr<SegmentReader>& reader);
  // The file cannot be read. `payer`: of the file.
  void RetryOrGiveUp(const std::string& name, int64_t now_ns, const absl::Status& why,
                     int64_t payer);
  // There is no room for the file; the folder tries it again after a while.
  void LeaveOut(const std::string& name, int64_t now_ns);
  size_t CountLeftOut() const;

  // Deletes the file of an ended process, unless another process may be using it. False if the
  // deletion has not finished yet.
  bool Delete(const std::string& name, const std::shared_ptr<SegmentReader>& reader,
              const SegmentClaim& claim, uint64_t own_namespace);

  // When the file was changed last; 0 if it is not there. nullopt if the file system does not
  // answer.
  std::optional<int64_t> ReadTime(const std::string& path) const;

  // Whether the last Look() has missed something, because a read took too long, or the process of
  // a file is not known yet. The next one may have it.
  bool IsBehind() const;

 private:
  struct OpenAttempt {
    int64_t first_ns = 0;
    int64_t again_ns = 0;      // time of the next attempt; INT64_MAX if there are no more attempts
    bool is_left_out = false;  // there was no room
  };

  bool MustList(int64_t now_ns);
  void ForgetRemoved(const std::vector<std::string>& names);
  bool IsNew(const std::string& name, int64_t now_ns) const;
  bool IsDeleted(const std::string& name, const std::shared_ptr<SegmentReader>& reader) const;
  bool Open(const std::string& name, int64_t now_ns, uint64_t next_scan);

  const Options options_;
  const std::shared_ptr<SpareThreads> threads_;
  FaultLog* const faults_;
  std::unique_ptr<FolderWatch> watch_;                         // nullptr if none is open
  int64_t listed_ns_ = 0;                                      // time of the last list
  int64_t stuck_since_ns_ = 0;                                 // 0 if the last list came in time
  std::map<std::string, std::weak_ptr<SegmentReader>> known_;  // expired: the process is forgotten
  std::map<std::string, NewSegment> waiting_;
  std::map<std::string, OpenAttempt> unreadable_;
};

}  // namespace rollcall
