// SPDX-License-Identifier: Apache-2.0
// A communicator as this process knows it: its block in the segment, and what the agent need not see.
//
// Data only, for the whole library. comm_table.h creates communicators and changes their state,
// handle_table.h finds them by their handle. One thread at a time uses a communicator (NCCL demands
// it), so most fields have one writer; the atomic ones are for what other threads may do meanwhile.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include <atomic>

#include "interpose/segment.h"
#include "interpose/segment_words.h"

namespace rollcall {

// What a non-blocking communicator was told to do and has not done when the call returned (late.h).
// Whoever sets `since` back to 0 acts on the rest, which is changed only while it is 0.
struct LateCall {
  segment::Word since{0};  // ticks: the host waits for it; 0: for none. No two are alike
  std::atomic<segment::BlockedEntry*> blocked{nullptr};
  segment::Word first_record{0}, end_record{0}, entered{0}, p2p_entered{0};
  std::atomic<uint32_t> end_state{0};  // CommState that it leads to; 0: it is a call like others

  // Thread that may still mark it; 0: none. What follows is that thread's own.
  std::atomic<uint32_t> marking_thread{0};
  void* stream = nullptr;
  uint64_t collectives = 0, p2p = 0;
};

// What the GPU was last told to write into one lane: when that is there, so is all before it.
struct PlacedMarker {
  const void* stream = nullptr;
  const segment::Word* word = nullptr;  // nullptr: nothing yet
  uint64_t value = 0;
};

// A communicator of this process. `handle` is the ncclComm_t, null while it is
// being created and after its end; all else is constant once that is set.
struct LocalComm {
  std::atomic<const void*> handle{nullptr};
  segment::CommEntry* entry = nullptr;
  segment::RecordEntry* ring = nullptr;  // in the segment, or private_ring
  uint64_t ring_mask = 0;               // records in it - 1
  segment::MarkerLane* lanes = nullptr;
  uint64_t marker_base = 0;  // address of `lanes` for the GPU; 0: no markers
  void* context = nullptr;   // CUcontext of the communicator's device
  uint32_t index = 0;
  bool non_blocking = false;
  bool on_trial = false;  // its markers count from the first call that is told to be launched
  std::atomic<uint32_t> maker{0};  // thread that made it, until it is told that it is ready; 0
  LateCall late;
  // Calls under way that end it: whatever its state, its block is not given to another.
  std::atomic<uint32_t> ending{0};
  bool by_plugin = false;                      // NCCL told of it (profiler_plugin.h), not a wrapper
  const segment::CommEntry* beside = nullptr;  // whose side channel this is (side_channel.h)
  std::atomic<bool> beside_left_out{false};    // there was no room for one of its own
  segment::RecordEntry* private_ring = nullptr;  // memory that nobody reads; nullptr: never needed
  PlacedMarker placed[segment::kMarkerLanes];
  // It cannot be known when the GPU has written the last of its markers: two streams share a lane, a
  // value comes twice, or a graph writes whenever it is launched.
  bool placed_out_of_order = false;
};

// The place of record `n`, and the oldest one that is still there of `end`.
inline segment::RecordEntry* RecordAt(const LocalComm* comm, uint64_t n) {
  return &comm->ring[n & comm->ring_mask];
}
inline uint64_t OldestRecord(const LocalComm* comm, uint64_t end) {
  return end > comm->ring_mask + 1 ? end - (comm->ring_mask + 1) : 0;
}

// Tells the communicators apart that have a block one after the other.
inline uint64_t Generation(const LocalComm* comm) { return Get(comm->entry->init_entered); }

}  // namespace rollcall
