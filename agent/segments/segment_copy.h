// SPDX-License-Identifier: Apache-2.0
// Turns copies of a segment's words into the values of a snapshot. The words are an untrusted
// process's: what comes out is checked, and texts are printable. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "agent/segments/segment_snapshot.h"
#include "agent/segments/tick_clock.h"
#include "interpose/segment.h"
#include "interpose/segment_messages.h"

namespace rollcall {

inline constexpr int32_t kMostRanks = 1 << 24;

// Errors: kFailedPrecondition (the process has not completed the segment), kInvalidArgument.
// Messages call the file `path`.
absl::Status CheckHeader(const std::string& path, const segment::SegmentHeader& header);

ClockSample SampleFrom(const segment::ClockPair& pair);

// Copies what the header says of the process. Sites, blocked threads and communicators lie
// elsewhere.
void CopyHeader(const segment::SegmentHeader& header, const TickClock& clock, SegmentSnapshot* out);

// Returns the threads inside a call. The keys of stores that they wait for lie in the header.
std::vector<BlockedSnapshot> CopyBlocked(
    const segment::SegmentHeader& header,
    const segment::BlockedEntry (&entries)[segment::kBlockedCapacity], const TickClock& clock);

// "/x/train.py:57 in train_epoch"
std::string SiteText(const segment::Site& site);

// "[1024, 4096]", "all_to_all_single [8, 4]", "barrier"; "" if the shape is invalid.
std::string ShapeText(const segment::Shape& shape);

// Copies the communicator without its records, messages and markers.
void CopyEntry(const segment::CommEntry& entry, const TickClock& clock, CommSnapshot* comm);

// Returns "" if the communicator is consistent, or a description of the first contradiction.
std::string FindInconsistency(const CommSnapshot& comm);

// Counts MPI's messages as sends and receives, too. They have no records; those of gloo without a
// tag have.
void CopyMessages(const segment::MessageTable& table, CommSnapshot* comm);

// Whether a communicator in this state has no transfers any more.
bool HasEnded(segment::CommState state);

// Capacity of the communicator's ring, in records; 0 if the entry has an invalid capacity.
uint64_t RingCapacity(const segment::CommEntry& entry);

// `index`: of the record in its ring. `entered`: the communicator's newest position. Leaves the
// shape empty.
RecordSnapshot CopyRecord(const segment::RecordEntry& record, uint64_t index, uint64_t entered,
                          const TickClock& clock);

// A process that calls long after its exit mark has not set it: a child of vfork that ends by
// exit() runs in its parent's memory. Other threads may call while a process ends.
void IgnoreExitOfChild(SegmentSnapshot* snapshot);

}  // namespace rollcall
