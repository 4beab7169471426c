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

// A communicator of this process. `handle` is the ncclComm_t, null while it is
// being created and after its end; all else is constant once that is set.
struct LocalComm {
  std::atomic<const void*> handle{nullptr};
  segment::CommEntry* entry = nullptr;
  segment::CallRecord* ring = nullptr;  // null: no room for records
  segment::MarkerLane* lanes = nullptr;
  uint64_t marker_base = 0;  // address of `lanes` for the GPU; 0: no markers
  void* context = nullptr;   // CUcontext of the communicator's device
  uint32_t index = 0;
  bool non_blocking = false;
  bool on_trial = false;  // its markers count from the first call that is told to be launched
  std::atomic<uint32_t> maker{0};  // thread that made it, until it is told that it is ready; 0
  LateCall late;
  bool by_plugin = false;                      // NCCL told of it (profiler_plugin.h), not a wrapper
  const segment::CommEntry* beside = nullptr;  // whose side channel this is (side_channel.h)
};

struct Recorder {
  std::atomic<segment::SegmentHeader*> header{nullptr};  // null: not recording
  segment::BlockedEntry* blocked = nullptr;
  segment::ClockSource clock = segment::ClockSource::kMonotonic;
  LibraryOptions options;
  LocalComm comms[segment::kCommCapacity];
};
extern Recorder recorder;

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

// How many communicators with this base id this process has created as `rank`:
// one unique id can serve several times where NCCL_COMM_ID is set.
uint32_t TimesCreated(uint64_t base_id, int32_t rank);

void SetState(LocalComm* comm, segment::CommState state);

// Makes `handle` known as `comm`; it forgets any earlier owner of the address.
void BindHandle(LocalComm* comm, const void* handle);
void ForgetHandle(LocalComm* comm);

// nullptr when the handle is not known.
LocalComm* FindComm(const void* handle);

// Room in the file for these bytes of the segment; false: there is none.
bool ReserveInSegment(size_t begin, size_t end);

// Renews the clock pair if the last is older than a second: called where time
// does not matter.
void RenewClock();

// Claims a slot of the blocked table for the calling thread; nullptr: none free.
segment::BlockedEntry* ClaimBlockedEntry();

int32_t ThreadId();

// Forgets what the calling thread remembers of the segment (record.cc).
void ForgetThread();

}  // namespace rollcall
