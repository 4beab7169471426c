// SPDX-License-Identifier: Apache-2.0
// How many records of each communicator a tick may have: each user has the same part of the tick,
// and in it each process. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>

#include "agent/segments/segment_snapshot.h"

namespace rollcall {

class RecordShares {
 public:
  // `processes`: of each payer (PayerOfReads()) in this tick.
  RecordShares(size_t most_records, const std::map<int64_t, size_t>& processes);

  // The most records that the next process of the payer may send of each of its communicators.
  // What it does not use, the others of the payer have.
  size_t TakeFor(int64_t payer, const SegmentSnapshot& snapshot);

 private:
  struct Left {
    size_t records = 0;
    size_t processes = 0;
  };
  std::map<int64_t, Left> left_;  // by payer
};

}  // namespace rollcall
