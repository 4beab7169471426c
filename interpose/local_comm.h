// SPDX-License-Identifier: Apache-2.0
// A communicator in this process: its block in the segment, and state that the agent does not need.
//
// Data only, for the whole library. comm_table.h creates communicators and changes their state,
// handle_table.h finds them by handle. One thread at a time uses a communicator (NCCL demands it),
// so most fields have one writer. Other threads may write the atomic fields meanwhile.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include <atomic>

#include "interpose/segment.h"
#include "interpose/segment_words.h"

namespace rollcall {

// The late call of a non-blocking communicator (late.h). The other fields change only while `since`
// is 0. The thread that sets `since` back to 0 acts on them.
struct LateCall {
  segment::Word since{0};  // ticks, unique: the host waits since then; 0 if there is no late call
  std::atomic<segment::BlockedEntry*> blocked{nullptr};
  segment::Word first_record{0}, end_record{0}, entered{0}, p2p_entered{0};
  std::atomic<uint32_t> end_state{0};  // CommState after it; 0 if it changes no state

  // The thread that may still place the marker, or 0. That thread owns the fields below.
  std::atomic<uint32_t> marking_thread{0};
  void* stream = nullptr;
  uint64_t collectives = 0, p2p = 0;
};

// The newest marker placed in one lane. Once the GPU has written it, it has written all earlier
// ones.
struct PlacedMarker {
  const void* stream = nullptr;
  const segment::Word* word = nullptr;  // nullptr if none was placed
  uint64_t value = 0;
};

// A communicator of this process. `handle` is the ncclComm_t; nullptr during creation and after the
// end. The block, `index` and `non_blocking` are constant while it is set.
struct LocalComm {
  std::atomic<const void*> handle{nullptr};
  segment::CommEntry* entry = nullptr;
  segment::RecordEntry* ring = nullptr;  // in the segment, or private_ring
  uint64_t ring_mask = 0;                // records in the ring - 1
  segment::MarkerLane* lanes = nullptr;
  uint64_t marker_base = 0;  // address of `lanes` for the GPU; 0 if there are no markers
  void* context = nullptr;   // CUcontext of the communicator's device
  uint32_t index = 0;
  bool non_blocking = false;
  bool markers_unproven = false;   // no flag for markers until NCCL reports a call as launched
  std::atomic<uint32_t> maker{0};  // thread that created it; 0 once that thread has enabled markers
  LateCall late;
  // Calls under way that end the communicator. Meanwhile its block stays its own in any state.
  std::atomic<uint32_t> ending{0};
  bool by_plugin = false;  // NCCL reported it (profiler_plugin.h), not a wrapper
  const segment::CommEntry* parent = nullptr;    // of a side channel (side_channel.h)
  std::atomic<bool> has_no_side_channel{false};  // there was no room for one of its side channels
  segment::RecordEntry* private_ring = nullptr;  // it is never read; nullptr if never needed
  PlacedMarker placed[segment::kMarkerLanes];
  // True if nothing shows when the GPU has written the last marker, because two streams share a
  // lane, a value comes twice, or a graph writes with each launch.
  bool placed_out_of_order = false;
};

// Record `n`, and the index of the oldest record still in the ring if `end` were written.
inline segment::RecordEntry* RecordAt(const LocalComm* comm, uint64_t n) {
  return &comm->ring[n & comm->ring_mask];
}
inline uint64_t OldestRecord(const LocalComm* comm, uint64_t end) {
  return end > comm->ring_mask + 1 ? end - (comm->ring_mask + 1) : 0;
}

// Distinguishes communicators that have the same block one after the other.
inline uint64_t Generation(const LocalComm* comm) { return Get(comm->entry->init_entered); }

}  // namespace rollcall
