// SPDX-License-Identifier: Apache-2.0
// What this process records with: the mapped segment, the options, the communicators' table, and the
// clock that stamps the records.
//
// The state itself, for the whole library. Recording() and Now() are for the hot path and signal
// handlers: they take no lock and make no system call (Now() makes one where the CPU has no usable
// counter). recording.h says when recording starts and ends.
#pragma once

#include <stdint.h>

#include <atomic>

#include "interpose/clock.h"
#include "interpose/local_comm.h"
#include "interpose/options.h"
#include "interpose/segment.h"

namespace rollcall {

struct Recorder {
  std::atomic<segment::SegmentHeader*> header{nullptr};  // null: not recording
  // The same, for those who are in the middle of something: not taken back when recording ends, and
  // writable then too.
  std::atomic<segment::SegmentHeader*> mapping{nullptr};
  segment::BlockedEntry* blocked = nullptr;
  segment::ClockSource clock = segment::ClockSource::kMonotonic;
  LibraryOptions options;
  std::atomic<uint32_t> comms_claimed{0};  // of those below; one without an entry has no block
  LocalComm comms[segment::kCommCapacity];
};
extern Recorder recorder;

// Calls `each` with every communicator that has a block.
template <typename Each>
void ForEachComm(Each each) {
  const uint32_t count = recorder.comms_claimed.load(std::memory_order_acquire);
  for (uint32_t i = 0; i < count; ++i) {
    if (recorder.comms[i].entry != nullptr) each(&recorder.comms[i]);
  }
}

inline bool Recording() { return recorder.header.load(std::memory_order_acquire) != nullptr; }
inline uint64_t Now() { return Ticks(recorder.clock); }

// Sets the three clocks of `pair` to this instant.
void SetClock(segment::ClockPair* pair);

// Renews the segment's last clock pair if it is older than a second. For calls that are slow anyway.
void RenewClock();

}  // namespace rollcall
