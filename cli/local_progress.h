// SPDX-License-Identifier: Apache-2.0
// Detects progress of the ranks on this host, by their segments alone.
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

namespace rollcall {

class LocalProgress {
 public:
  explicit LocalProgress(std::string directory);
  ~LocalProgress();

  // Looks at all segments in the folder; to be called some times a second.
  void Look(int64_t now_ns);

  // For how long no rank of `ranks` (global ones) has made a call on the communicator. Where none of
  // them is here, all ranks count; where none has the communicator, all of its calls do. 0: some
  // moved, or nothing has been seen twice.
  int64_t StandsStillFor(const std::set<int32_t>& ranks, uint64_t communicator,
                         int64_t now_ns) const;

 private:
  struct Moves {
    uint64_t communicator = 0;  // id
    uint64_t calls = 0;         // entered and returned, of all kinds
    int64_t since_ns = 0;       // that number has stood since
  };
  struct Rank {
    std::unique_ptr<SegmentReader> reader;
    int32_t global_rank = -1;
    // By block and its owner: one process may have several ranks of a communicator.
    std::map<std::pair<uint32_t, uint64_t>, Moves> members;
  };

  void LookAt(Rank* rank, int64_t now_ns);

  const std::string directory_;
  std::map<std::string, Rank> ranks_;  // by file
};

}  // namespace rollcall
