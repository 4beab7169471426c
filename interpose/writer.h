// The process's end of its segment: creates it at the first NCCL call, gives
// communicators their blocks, and notes facts. Decides nothing, formats nothing.
//
// No function here throws, blocks or changes errno. Those that a call passes on
// its way (in record.h) neither allocate, lock nor make system calls; those
// below are for creation and teardown, which are slow anyway. If the segment
// cannot be made, one line says so on stderr, and nothing is recorded.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include <atomic>

#include "interpose/clock.h"
#include "interpose/options.h"
#include "interpose/segment.h"

namespace rollcall {

struct CallGraph;  // graphs.h

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
  segment::CallRecord* ring = nullptr;  // in the segment, or private_ring
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
  segment::CallRecord* private_ring = nullptr;  // memory that nobody reads; nullptr: never needed
  PlacedMarker placed[segment::kMarkerLanes];
  // It cannot be known when the GPU has written the last of its markers: two streams share a lane, a
  // value comes twice, or a graph writes whenever it is launched.
  bool placed_out_of_order = false;
};

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

// Makes the segment unless it is there, or was tried in vain. True when recording.
bool StartRecording();

// What is known of a communicator before its creation is called.
struct NewComm {
  uint64_t base_id = 0;  // hash of the unique id; 0 for children
  uint64_t parent_id = 0;
  uint64_t split_id = 0;
  uint64_t id = 0;
  int32_t rank = -1, size = 0;
  int32_t parent_rank = -1, parent_size = 0;
  const char* name = nullptr;
  bool non_blocking = false;
};

// A block for a communicator about to be created; nullptr when there is no room
// (counted). Its state is kInitializing.
LocalComm* AddComm(const NewComm& what);

// The place of record `n`, and the oldest one that is still there of `end`.
inline segment::CallRecord* RecordAt(const LocalComm* comm, uint64_t n) {
  return &comm->ring[n & comm->ring_mask];
}
inline uint64_t OldestRecord(const LocalComm* comm, uint64_t end) {
  return end > comm->ring_mask + 1 ? end - (comm->ring_mask + 1) : 0;
}

void SetState(LocalComm* comm, segment::CommState state);

// The same, unless another thread has given it another state than `from` meanwhile.
void ChangeState(LocalComm* comm, segment::CommState from, segment::CommState to);

// Makes `handle` known as `comm`; it forgets any earlier owner of the address.
void BindHandle(LocalComm* comm, const void* handle);
void ForgetHandle(LocalComm* comm);

// nullptr when the handle is not known.
LocalComm* FindComm(const void* handle);

// Renews the clock pair if the last is older than a second: called where time
// does not matter.
void RenewClock();

// Claims a slot of the blocked table for the calling thread; nullptr: none free.
segment::BlockedEntry* ClaimBlockedEntry();

int32_t ThreadId();

// Forgets what the calling thread remembers of the segment (record.cc).
void ForgetThread();

}  // namespace rollcall
