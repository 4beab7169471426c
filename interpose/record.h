// The hot path of every wrapped call: records that a thread is inside the call,
// that the communicator entered and left it, and its arguments. Never allocates,
// locks, throws, makes a system call or changes errno.
//
// NCCL allows one thread at a time on a communicator, so its words have one
// writer and need no atomic addition. If a program breaks that rule, the words
// may be wrong; the daemon sees two threads inside calls, or records that overlap,
// and reports concurrent_use.
#pragma once

#include <stddef.h>
#include <string.h>

#include "interpose/nccl_api.h"
#include "interpose/call_sites.h"
#include "interpose/markers.h"
#include "interpose/ops.h"
#include "interpose/writer.h"

namespace rollcall {

// Into each wrapper, where the operation is a constant: passing a call's arguments once more, and
// looking up what kind of call it is, take as long as writing the record.
#define ROLLCALL_HOT __attribute__((always_inline)) inline

struct CallInfo {
  Op op;
  uint8_t dtype;
  uint8_t reduction;
  int32_t peer;
  uint64_t count;
  cudaStream_t stream;
};

// A communicator with calls in the group that this thread has open, and how it
// stood before, for the case that the group fails.
struct GroupComm {
  LocalComm* comm;
  cudaStream_t stream;
  uint64_t entered, p2p_entered, signature, recorded;
  uint64_t capture;      // as CaptureOf() says
  CallGraph* graph;      // that it is captured into; nullptr: none
  uint32_t graph_calls;  // that this held before
};

// A communicator being created inside a group: its handle appears when it ends.
struct PendingComm {
  LocalComm* comm;
  ncclComm_t* handle;
};

inline constexpr int kGroupComms = 32;

struct GroupLists;  // group_lists.h

struct ThreadState {
  bool inside;  // in a wrapped call: those that it makes itself are NCCL's business
  bool blocked_claimed;
  uint8_t next_shape;  // of the next call, as the program told it; 0: it did not
  uint8_t kept_shape;  // of all calls until PyTorch's own returns (torch_shapes.h)
  uint16_t group_number;
  uint16_t makings_before_fork;  // for its child (segment_file.h)
  int group_depth;
  int group_size;
  int pending_size;
  segment::BlockedEntry* blocked;
  LocalComm* last_comm;
  uint32_t thread_id;
  uint64_t nested_unique_id;  // hash of the id that CommInitAll made inside
  GroupLists* lists;          // of the group that it has open; nullptr: it never had one
};
// Small: whoever loads us late (an NCCL that takes us as its plugin) has 1,664 bytes left for all
// libraries of that kind, in glibc up to 2.36.
static_assert(sizeof(ThreadState) <= 64);
// __thread, not thread_local: nothing to construct, so no guard at each access.
// Initial-exec by the build's flags: a plain offset from the thread pointer.
extern __thread ThreadState this_thread;

// For the time of one wrapped call on this thread.
class InsideCall {
 public:
  explicit InsideCall(ThreadState* thread) : thread_(thread) { thread_->inside = true; }
  ~InsideCall() { thread_->inside = false; }
  InsideCall(const InsideCall&) = delete;
  InsideCall& operator=(const InsideCall&) = delete;

 private:
  ThreadState* thread_;
};

inline segment::BlockedEntry* BlockedOf(ThreadState* thread) {
  if (__builtin_expect(!thread->blocked_claimed, 0)) {
    thread->blocked = ClaimBlockedEntry();
    thread->thread_id = static_cast<uint32_t>(ThreadId());
    thread->blocked_claimed = true;
  }
  return thread->blocked;
}

// Notes that this thread is inside `op` since `since`, until it goes out of scope.
class Blocked {
 public:
  Blocked(ThreadState* thread, Op op, const LocalComm* comm, const void* stream, uint64_t since)
      : Blocked(BlockedOf(thread), op, comm, stream, since) {}
  Blocked(segment::BlockedEntry* entry, Op op, const LocalComm* comm, const void* stream,
          uint64_t since)
      : entry_(entry) {
    if (entry_ == nullptr) return;
    entry_->op.store(static_cast<uint32_t>(op), std::memory_order_relaxed);
    entry_->comm.store(comm == nullptr ? segment::kNoComm : comm->index, std::memory_order_relaxed);
    entry_->stream.store(reinterpret_cast<uintptr_t>(stream), std::memory_order_relaxed);
    entry_->since.store(since, std::memory_order_release);
  }
  ~Blocked() {
    if (entry_ != nullptr) entry_->since.store(0, std::memory_order_release);
  }
  Blocked(const Blocked&) = delete;
  Blocked& operator=(const Blocked&) = delete;

 private:
  segment::BlockedEntry* entry_;
};

inline LocalComm* CommOf(ThreadState* thread, ncclComm_t handle) {
  LocalComm* comm = thread->last_comm;
  if (comm != nullptr && comm->handle.load(std::memory_order_relaxed) == handle) return comm;
  comm = FindComm(handle);
  thread->last_comm = comm;
  return comm;
}

// What BeginRecord changed, for EndRecord.
struct OpenRecord {
  segment::CallRecord* record;
  uint64_t signature;  // before the call
  bool p2p;
};

// The same of a call that is captured into a CUDA graph (graphs.h).
struct CapturedRecord {
  segment::CallRecord* record;
  CallGraph* graph;  // nullptr: there was no room
};

// What a record tells besides the call's arguments.
struct RecordOrigin {
  uint32_t thread;
  uint16_t group;
  uint8_t shape;
  uint8_t flags;    // segment::RecordFlags but for kRecordP2p
  uint64_t caller;  // CallerWord()
};

inline uint64_t CallerWord(const void* caller) {
  return reinterpret_cast<uintptr_t>(caller) | CurrentSite() << segment::kSiteShift;
}

inline void Raise(segment::Word* word, uint64_t value) {
  word->store(value, std::memory_order_release);
}
inline uint64_t Get(const segment::Word& word) { return word.load(std::memory_order_relaxed); }

// Tells the communicators apart that have a block one after the other.
inline uint64_t GenerationOf(const LocalComm* comm) { return Get(comm->entry->init_entered); }

// The fields from `peer` to `position`, as two words: the number of stores is what a record costs.
ROLLCALL_HOT void StoreArguments(segment::CallRecord* record, const CallInfo& info,
                                 const RecordOrigin& origin, uint64_t position) {
  constexpr size_t kAt = offsetof(segment::CallRecord, peer);
  static_assert(offsetof(segment::CallRecord, group) == kAt + 4 &&
                offsetof(segment::CallRecord, op) == kAt + 6 &&
                offsetof(segment::CallRecord, dtype) == kAt + 7 &&
                offsetof(segment::CallRecord, reduction) == kAt + 8 &&
                offsetof(segment::CallRecord, result) == kAt + 9 &&
                offsetof(segment::CallRecord, flags) == kAt + 10 &&
                offsetof(segment::CallRecord, shape) == kAt + 11 &&
                offsetof(segment::CallRecord, position) == kAt + 12);
  static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__);
  const uint64_t flags =
      origin.flags | (KindOf(info.op) == CallKind::kP2p ? segment::kRecordP2p : 0);
  const uint64_t words[] = {
      static_cast<uint32_t>(info.peer) | uint64_t{origin.group} << 32 |
          static_cast<uint64_t>(info.op) << 48 | uint64_t{info.dtype} << 56,
      info.reduction | flags << 16 | uint64_t{origin.shape} << 24 | position << 32,
  };
  memcpy(reinterpret_cast<char*>(record) + kAt, words, sizeof(words));
}

ROLLCALL_HOT void FillRecord(segment::CallRecord* record, uint64_t index, uint64_t position,
                             const CallInfo& info, const RecordOrigin& origin, uint64_t now) {
  record->seq.store(static_cast<uint32_t>(2 * index + 1), std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_release);
  record->thread = origin.thread;
  StoreArguments(record, info, origin, position);
  record->entered = now;
  record->returned.store(0, std::memory_order_relaxed);
  record->count = info.count;
  record->stream = reinterpret_cast<uintptr_t>(info.stream);
  record->caller = origin.caller;
  record->seq.store(static_cast<uint32_t>(2 * index + 2), std::memory_order_release);
}

// The communicator enters the call.
ROLLCALL_HOT OpenRecord EnterCall(LocalComm* comm, const CallInfo& info, const RecordOrigin& origin,
                                  uint64_t now) {
  segment::CommEntry* entry = comm->entry;
  const bool p2p = KindOf(info.op) == CallKind::kP2p;
  const uint64_t index = Get(entry->recorded);
  const uint64_t position = Get(entry->entered);
  const OpenRecord open = {RecordAt(comm, index), Get(entry->signature), p2p};
  FillRecord(open.record, index, position, info, origin, now);
  entry->last_entered.store(now, std::memory_order_relaxed);
  Raise(&entry->recorded, index + 1);
  if (p2p) {
    Raise(&entry->p2p_entered, Get(entry->p2p_entered) + 1);
    return open;
  }
  const uint64_t signature =
      segment::NextSignature(open.signature, static_cast<uint8_t>(Canonical(info.op)), info.dtype,
                             info.reduction, info.peer, info.count);
  entry->signature.store(signature, std::memory_order_relaxed);
  if ((position + 1) % segment::kCheckpointInterval == 0) {
    segment::Checkpoint* checkpoint =
        &entry->checkpoints[(position + 1) / segment::kCheckpointInterval %
                            segment::kCheckpointCapacity];
    checkpoint->signature.store(signature, std::memory_order_relaxed);
    Raise(&checkpoint->position, position + 1);
  }
  Raise(&entry->entered, position + 1);
  return open;
}

ROLLCALL_HOT OpenRecord BeginRecord(ThreadState* thread, LocalComm* comm, const CallInfo& info,
                                    uint64_t now, const void* caller, bool grouped) {
  const RecordOrigin origin = {thread->thread_id, grouped ? thread->group_number : uint16_t{0},
                               thread->next_shape, 0, CallerWord(caller)};
  thread->next_shape = thread->kept_shape;
  return EnterCall(comm, info, origin, now);
}

// The same around a call that is being captured into a CUDA graph: it takes no position.
CapturedRecord BeginCaptured(ThreadState* thread, LocalComm* comm, const CallInfo& info,
                             const void* caller, uint64_t capture);
void EndCaptured(const ThreadState* thread, LocalComm* comm, const CallInfo& info,
                 const CapturedRecord& captured, ncclResult_t result);

// An error at once: NCCL took no notice of the call, so neither do positions.
inline void TakeBack(LocalComm* comm, const OpenRecord& open) {
  comm->placed_out_of_order = true;  // the next call has the same position
  segment::CommEntry* entry = comm->entry;
  if (open.p2p) {
    Raise(&entry->p2p_entered, Get(entry->p2p_entered) - 1);
    return;
  }
  entry->signature.store(open.signature, std::memory_order_relaxed);
  Raise(&entry->entered, Get(entry->entered) - 1);
}

inline bool IsError(ncclResult_t result) {
  return result != ncclSuccess && result != ncclInProgress;
}

ROLLCALL_HOT void EndRecord(LocalComm* comm, const OpenRecord& open, ncclResult_t result,
                            bool grouped) {
  open.record->result.store(static_cast<uint8_t>(result), std::memory_order_relaxed);
  if (__builtin_expect(result != ncclSuccess, 0)) {
    if (!IsError(result)) return;  // it happens later
    open.record->returned.store(Now(), std::memory_order_release);
    TakeBack(comm, open);
    return;
  }
  if (grouped) return;  // it happens when the group ends
  open.record->returned.store(Now(), std::memory_order_release);
  segment::CommEntry* entry = comm->entry;
  if (open.p2p) {
    Raise(&entry->p2p_returned, Get(entry->p2p_entered));
  } else {
    Raise(&entry->returned, Get(entry->entered));
  }
}

// The communicator's part in the group that this thread has open; nullptr: the
// thread's list is full, and its calls go on without markers, and return when they are made.
GroupComm* JoinGroup(ThreadState* thread, LocalComm* comm, cudaStream_t stream);

// The newest call on the communicator has returned ncclInProgress (late.h).
void NoteLateCall(const ThreadState* thread, LocalComm* comm);

// The calls of this thread's group have returned, or not happened.
void CloseGroup(ThreadState* thread, ncclResult_t result);

template <typename Function, typename... Args>
__attribute__((noinline, cold)) ncclResult_t ObserveCaptured(Function* real, ThreadState* thread,
                                                             LocalComm* comm, CallInfo info,
                                                             const void* caller, uint64_t capture,
                                                             Args... args) {
  const Blocked blocked(thread, info.op, comm, info.stream, Now());
  const CapturedRecord captured = BeginCaptured(thread, comm, info, caller, capture);
  const ncclResult_t result = real(args...);
  EndCaptured(thread, comm, info, captured, result);
  return result;
}

// A call alone, on a communicator without markers and while nothing is captured.
template <typename Function, typename... Args>
ROLLCALL_HOT ncclResult_t ObservePlain(Function* real, ThreadState* thread, LocalComm* comm,
                                       const CallInfo& info, const void* caller, Args... args) {
  const uint64_t now = Now();
  const OpenRecord open = BeginRecord(thread, comm, info, now, caller, false);
  const Blocked blocked(thread->blocked, info.op, comm, info.stream, now);
  const ncclResult_t result = real(args...);
  EndRecord(comm, open, result, false);
  return result;
}

// Any call.
template <typename Function, typename... Args>
ROLLCALL_HOT ncclResult_t ObserveFully(Function* real, ThreadState* thread, LocalComm* comm,
                                       const CallInfo& info, const void* caller, Args... args) {
  const uint64_t now = Now();
  const bool grouped = thread->group_depth > 0;
  const GroupComm* part = grouped ? JoinGroup(thread, comm, info.stream) : nullptr;
  const uint64_t capture = part != nullptr ? part->capture : CaptureOf(comm, info.stream);
  if (__builtin_expect(capture > kOffLimits, 0)) {
    return ObserveCaptured(real, thread, comm, info, caller, capture, args...);
  }
  const OpenRecord open = BeginRecord(thread, comm, info, now, caller, grouped);
  const Blocked blocked(thread->blocked, info.op, comm, info.stream, now);
  const bool marked = HasMarkers(comm) && !grouped && capture == 0;
  const uint64_t collectives = open.p2p ? 0 : Get(comm->entry->entered);
  const uint64_t p2p = open.p2p ? Get(comm->entry->p2p_entered) : 0;
  if (marked) MarkBefore(comm, info.stream, collectives, p2p);
  const ncclResult_t result = real(args...);
  EndRecord(comm, open, result, grouped && part != nullptr);
  if (marked && result == ncclSuccess) MarkAfter(comm, info.stream, collectives, p2p);
  return result;
}

// What a call on a communicator does, around the real function.
template <typename Function, typename... Args>
ROLLCALL_HOT ncclResult_t ObserveCall(Function* real, ncclComm_t handle, const CallInfo& info,
                                      const void* caller, Args... args) {
  if (__builtin_expect(real == nullptr, 0)) return ncclSystemError;
  ThreadState* thread = &this_thread;
  LocalComm* comm = thread->inside || !Recording() ? nullptr : CommOf(thread, handle);
  if (comm == nullptr) {
    thread->next_shape = thread->kept_shape;
    if (!thread->inside && Recording()) {
      recorder.mapping.load(std::memory_order_acquire)->unknown_comm_calls.fetch_add(1);
    }
    return real(args...);
  }
  const InsideCall inside(thread);
  BlockedOf(thread);  // gives the thread its number, which the record holds
  // One word to test, not three.
  const uint64_t special = static_cast<uint64_t>(thread->group_depth) | comm->marker_base |
                           captures_open.load(std::memory_order_relaxed);
  const ncclResult_t result = __builtin_expect(special != 0, 0)
                                  ? ObserveFully(real, thread, comm, info, caller, args...)
                                  : ObservePlain(real, thread, comm, info, caller, args...);
  if (__builtin_expect(result == ncclInProgress, 0)) NoteLateCall(thread, comm);
  return result;
}

// What a call does that waits for no other rank, but may stand in the driver.
template <typename Function, typename... Args>
ncclResult_t ObserveLocal(Function* real, Op op, ncclComm_t handle, Args... args) {
  if (__builtin_expect(real == nullptr, 0)) return ncclSystemError;
  ThreadState* thread = &this_thread;
  if (thread->inside || !Recording()) return real(args...);
  const InsideCall inside(thread);
  const LocalComm* comm = handle == nullptr ? nullptr : FindComm(handle);
  const Blocked blocked(thread, op, comm, nullptr, Now());
  return real(args...);
}

// As CUDA (cudaErrorSharedObjectInitFailed, and the driver alike) and HIP number it.
inline constexpr int kLibraryMissing = 303;

// What a call that waits for the GPU does, around the real function. A process
// that never called NCCL has no segment, and pays one load.
template <typename Result, typename... Parameters, typename... Args>
Result ObserveWait(Result (*real)(Parameters...), Op op, const void* stream, Args... args) {
  if (__builtin_expect(real == nullptr, 0)) return static_cast<Result>(kLibraryMissing);
  ThreadState* thread = &this_thread;
  if (thread->inside || !Recording()) return real(args...);
  const InsideCall inside(thread);
  const Blocked blocked(thread, op, thread->last_comm, stream, Now());
  const Result result = real(args...);
  RenewClock();
  return result;
}

}  // namespace rollcall
