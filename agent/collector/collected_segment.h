// SPDX-License-Identifier: Apache-2.0
// The segment of one process: reads it in each tick, and keeps its data about the process itself. A
// segment on a file system that does not answer is left out until it does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "agent/collector/fault_log.h"
#include "agent/collector/process_reads.h"
#include "agent/segments/segment_owner.h"
#include "agent/segments/segment_reader.h"
#include "agent/segments/tick_clock.h"
#include "rollcall/v1/agent.pb.h"

namespace rollcall {

class CollectedSegment {
 public:
  CollectedSegment() = default;  // the process has none
  // `file`: its name in the folder; empty if it is in another folder.
  CollectedSegment(std::string file, std::shared_ptr<SegmentReader> reader, SegmentClaim claim);

  // May be nullptr.
  const std::shared_ptr<SegmentReader>& reader() const { return reader_; }
  const std::string& file() const { return file_; }
  const SegmentClaim& claim() const { return claim_; }
  void SetFile(std::string file) { file_ = std::move(file); }
  size_t bytes() const { return bytes_; }  // of what ReadFirst() has read
  // Whether the last read timed out: all that is known of the segment is old.
  bool stuck() const { return stuck_; }
  bool exit_marked() const { return exit_marked_; }
  // The process's data by the newest read.
  const v1::Evidence& said() const { return said_; }

  bool IsFile(const SegmentReader& other) const;

  // Whether the life lock shows that the process has ended, which /proc does not show. nullopt if a
  // look might block.
  std::optional<bool> ShowsEnd();

  // `clock`: as SegmentReader::Read().
  absl::StatusOr<SegmentSnapshot> ReadFirst(const ProcessReads& reads, const HostClock* clock,
                                            FaultLog* faults);
  // An error also if there is nothing new. `had_memory_ns`: when the process had its memory last.
  absl::StatusOr<SegmentSnapshot> Read(bool whole, int64_t had_memory_ns, const ProcessReads& reads,
                                       const HostClock* clock, FaultLog* faults);

 private:
  absl::StatusOr<SegmentSnapshot> ReadFile(const ProcessReads& reads, const HostClock* clock,
                                           FaultLog* faults);

  std::string file_;
  std::shared_ptr<SegmentReader> reader_;
  SegmentClaim claim_;
  size_t bytes_ = 0;
  bool stuck_ = false;
  bool read_after_end_ = false;
  bool exit_marked_ = false;
  v1::Evidence said_;
};

}  // namespace rollcall
