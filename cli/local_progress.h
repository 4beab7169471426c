// SPDX-License-Identifier: Apache-2.0
// Detects progress of the ranks on this host from their segments alone.
//
// `rollcall run` checks this before it ends a job because of a verdict of a daemon on the
// network. One owner, one thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "agent/segments/segment_reader.h"
#include "daemon/words/rank_ranges.h"

namespace rollcall {

class LocalProgress {
 public:
  explicit LocalProgress(std::string directory);
  ~LocalProgress();

  // Reads all segments in the folder. Call this several times a second.
  void Look(int64_t now_ns);

  // How long no rank of `ranks` (global) has made a call on the communicator. If none of them is on
  // this host, all ranks count. If a rank does not have the communicator, all calls of the rank
  // count. 0: some rank moved, or Look() has not run twice.
  int64_t StandsStillFor(const RankRanges& ranks, uint64_t communicator,
                         int64_t now_ns) const;

  // The ids of all communicators that ranks of this host have or had.
  const std::set<uint64_t>& communicators() const { return communicators_; }

 private:
  struct Moves {
    uint64_t communicator = 0;  // id
    uint64_t calls = 0;         // entered and returned, of all kinds
    int64_t since_ns = 0;       // the time of the last change of `calls`
  };
  struct Rank {
    std::unique_ptr<SegmentReader> reader;
    int32_t global_rank = -1;
    // By the block and its creation time: one process may have several ranks of a communicator.
    std::map<std::pair<uint32_t, uint64_t>, Moves> members;
  };

  void LookAt(Rank* rank, int64_t now_ns);

  const std::string directory_;
  std::map<std::string, Rank> ranks_;  // by the name of the segment
  std::set<uint64_t> communicators_;   // ids
};

}  // namespace rollcall
