// SPDX-License-Identifier: Apache-2.0
// The state of recording: the mapped segment, the options, the table of communicators, and the
// clock of the records.
//
// The whole library uses this. Recording() and Now() are for the hot path and for signal handlers:
// they take no lock and make no system call (Now() makes one if the CPU has no usable counter).
// recording.h defines when recording starts and ends.
#pragma once

#include <stdint.h>

#include <atomic>

#include "interpose/clock.h"
#include "interpose/local_comm.h"
#include "interpose/options.h"
#include "interpose/segment.h"

namespace rollcall {

struct Recorder {
  std::atomic<segment::SegmentHeader*> header{nullptr};  // null if not recording
  // As `header`, for code that is inside a call: stays set, and writable, after recording ends.
  std::atomic<segment::SegmentHeader*> mapping{nullptr};
  segment::BlockedEntry* blocked = nullptr;
  segment::ClockSource clock = segment::ClockSource::kMonotonic;
  LibraryOptions options;
  std::atomic<uint32_t> comms_claimed{0};  // entries of `comms`; one without an entry has no block
  LocalComm comms[segment::kCommCapacity];
};
extern Recorder recorder;

// Calls `each` for every communicator that has a block.
template <typename Each>
void ForEachComm(Each each) {
  const uint32_t count = recorder.comms_claimed.load(std::memory_order_acquire);
  for (uint32_t i = 0; i < count; ++i) {
    if (recorder.comms[i].entry != nullptr) each(&recorder.comms[i]);
  }
}

inline bool Recording() { return recorder.header.load(std::memory_order_acquire) != nullptr; }
inline uint64_t Now() { return Ticks(recorder.clock); }

// Sets the three clocks of `pair` to the same instant.
void SetClock(segment::ClockPair* pair);

// Renews the segment's last clock pair if it is older than a second. For calls that are not on the
// hot path.
void RenewClock();

}  // namespace rollcall
