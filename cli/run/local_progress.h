// SPDX-License-Identifier: Apache-2.0
// Detects progress of the ranks on this host from their segments alone.
//
// `rollcall run` checks this before it ends a job because of a verdict of a daemon on the
// network. A thread of this object reads the segments, because a file server may not answer and a
// job may have many segments. What it has read until now counts, and only while it is new.
//
// One owner.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "base/worker.h"
#include "daemon/words/rank_ranges.h"

namespace rollcall {

class LocalProgress {
 public:
  // The segments of one host that count. Beyond this number, it is unknown whether all ranks stand
  // still.
  static constexpr size_t kMostSegments = 4096;

  explicit LocalProgress(std::string directory, size_t most_segments = kMostSegments);
  ~LocalProgress();  // leaves the thread behind if the folder does not answer
  LocalProgress(const LocalProgress&) = delete;
  LocalProgress& operator=(const LocalProgress&) = delete;

  // Waits until all segments have been read once.
  void AwaitReading(SteadyTime deadline) const;

  // How long no rank of `ranks` (global) has made a call on the communicator. If none of them is on
  // this host, all ranks count. If a rank does not have the communicator, all calls of the rank
  // count. 0 if some rank moved, or the segments have not been read twice, or not lately, or there
  // are too many.
  int64_t StandsStillFor(const RankRanges& ranks, uint64_t communicator, int64_t now_ns) const;

  // The ids of all communicators that ranks of this host have or had, and the pids of all processes
  // with a segment, in their own namespaces. Empty until the first reading ends.
  std::set<uint64_t> communicators() const;
  std::set<pid_t> pids() const;

 private:
  struct Moves {
    uint64_t communicator = 0;  // id
    uint64_t calls = 0;         // entered and returned, of all kinds
    int64_t since_ns = 0;       // the time of the last change of `calls`
  };
  struct Rank {
    int32_t global_rank = -1;
    // By the block and its creation time: one process may have several ranks of a communicator.
    std::map<std::pair<uint32_t, uint64_t>, Moves> members;
  };
  // What one reading of all segments has found.
  struct Found {
    int64_t looked_ns = 0;  // when the reading began; 0 if never
    bool has_all = true;    // false: there are too many segments, or some cannot be opened now
    std::map<std::string, Rank> ranks;  // by the name of the segment
    std::set<uint64_t> communicators;   // this and the pids also of earlier readings
    std::set<pid_t> pids;
  };
  class Reader;
  struct Shared;

  std::shared_ptr<const Found> Newest() const;

  const std::shared_ptr<Shared> shared_;
  Worker worker_;
};

}  // namespace rollcall
