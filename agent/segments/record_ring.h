// SPDX-License-Identifier: Apache-2.0
// Reads the records of one process's communicators from their rings, each record once it is
// complete. The process writes meanwhile: a record counts only if two copies of it agree.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "agent/segments/segment_file.h"
#include "agent/segments/segment_snapshot.h"
#include "agent/segments/tick_clock.h"
#include "interpose/segment.h"

namespace rollcall {

// How far a ring has been read.
struct RingProgress {
  uint64_t next = 0;  // all records before this one have been read, completed
  uint64_t lost = 0;  // overwritten before they were read
};

class RecordRing {
 public:
  // Adds to `comm` the records since `progress`, at most as many as the ring has (`capacity`), and
  // moves `progress` on.
  void Read(const SegmentFile& file, const TickClock& clock, uint64_t capacity,
            RingProgress* progress, CommSnapshot* comm);

 private:
  bool ReadTwice(const SegmentFile& file, uint64_t ring, uint64_t capacity, uint64_t begin,
                 uint64_t end);
  const std::string& ReadShape(const SegmentFile& file, uint8_t number);

  // Two copies of new records, made one after the other; nullptr if there were none so far.
  std::unique_ptr<segment::RecordEntry[]> records_, again_;
  std::vector<std::string> shapes_;  // by index; a shape never changes; empty if not read yet
};

}  // namespace rollcall
