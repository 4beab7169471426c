// SPDX-License-Identifier: Apache-2.0
// Reads segment files of running and of ended processes.
//
// An untrusted process writes the segment. So the reader copies the words (segment_file.h), checks
// the copy (segment_copy.h), and uses only the copy. All text is printable ASCII. The reader leaves
// out inconsistent parts and reports them in `warnings`.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "agent/segments/record_ring.h"
#include "agent/segments/segment_file.h"
#include "agent/segments/segment_network.h"
#include "agent/segments/segment_snapshot.h"
#include "agent/segments/tick_clock.h"
#include "base/unique_fd.h"
#include "interpose/segment.h"

namespace rollcall {

class SegmentReader {
 public:
  // Errors as for SegmentFile::Open(), and for the two functions below.
  static absl::StatusOr<std::unique_ptr<SegmentReader>> Open(const std::string& path);
  static absl::StatusOr<std::unique_ptr<SegmentReader>> FromDescriptor(const std::string& path,
                                                                       UniqueFd fd);
  // Returns another reader of the same file, for another thread.
  absl::StatusOr<std::unique_ptr<SegmentReader>> Again() const;
  explicit SegmentReader(SegmentFile file) : file_(std::move(file)) {}
  SegmentReader(const SegmentReader&) = delete;
  SegmentReader& operator=(const SegmentReader&) = delete;

  const SegmentFile& file() const { return file_; }

  // Returns the current state of the segment, without the records that an earlier Read() returned
  // completed. `host`: the clocks of this host; the process's CLOCK_MONOTONIC is `ahead_ns` ahead
  // of them (HostClock::ClockFor). Without `host`, times are on the wall clock. Errors as for
  // Open().
  absl::StatusOr<SegmentSnapshot> Read(const HostClock* host = nullptr, int64_t ahead_ns = 0);

  // Returns the states of NCCL's transfers over the network, by communicator; of ended
  // communicators none. `host` and `ahead_ns` as for Read(). `wanted`: ids of communicators, of
  // which the first kMostNetworkComms in the segment are read; nullptr means all ids. Empty if the
  // library records none, and on errors.
  std::vector<NetworkSnapshot> ReadNetwork(const HostClock* host = nullptr, int64_t ahead_ns = 0,
                                           const std::vector<uint64_t>* wanted = nullptr);

  // The next Read() returns every record that the ring still holds.
  void StartOver() { progress_.clear(); }

 private:
  struct Markers {
    uint64_t started = 0, finished = 0, p2p_started = 0, p2p_finished = 0;
  };
  struct ReadProgress {
    uint64_t id = 0;
    RingProgress ring;
    Markers markers;
  };

  const TickClock& Clock(const segment::SegmentHeader& header, const HostClock* host,
                         int64_t ahead_ns);
  bool ReadComm(uint32_t index, const TickClock& clock, SegmentSnapshot* snapshot);
  void ReadSites(uint32_t count);
  void ReadMarkers(uint32_t index, Markers* markers, CommSnapshot* comm) const;
  void ReadGraphMarkers(uint32_t index, Markers* markers) const;
  void ReadMessages(uint32_t index, CommSnapshot* comm) const;

  const SegmentFile file_;
  RecordRing ring_;
  std::vector<ReadProgress> progress_;
  std::vector<std::string> sites_;  // read so far; a site never changes
  std::optional<TickClock> clock_;
};

}  // namespace rollcall
