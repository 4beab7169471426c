// SPDX-License-Identifier: Apache-2.0
// What a wrapper does around the real function: records that a thread is inside the call, that the
// communicator enters and leaves it, and its arguments; and places the GPU's markers.
//
// For the wrappers (calls_*.cc) alone, on the thread that makes the call. Nothing here allocates,
// locks, throws or changes errno; a call alone, on a communicator without markers and while nothing
// is captured, makes no system call but the clock's, where the CPU has no usable counter.
#pragma once

#include "interpose/blocked_threads.h"
#include "interpose/call_record.h"
#include "interpose/graph_launches.h"
#include "interpose/groups.h"
#include "interpose/handle_table.h"
#include "interpose/late.h"
#include "interpose/markers.h"
#include "interpose/recorder.h"

namespace rollcall {

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
  const uint64_t capture = part != nullptr ? part->capture : FindCapture(comm, info.stream);
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
  LocalComm* comm = thread->inside || !Recording() ? nullptr : FindThreadComm(thread, handle);
  if (comm == nullptr) {
    thread->next_shape = thread->kept_shape;
    if (!thread->inside && Recording()) {
      recorder.mapping.load(std::memory_order_acquire)->unknown_comm_calls.fetch_add(1);
    }
    return real(args...);
  }
  const InsideCall inside(thread);
  ClaimedEntry(thread);  // gives the thread its number, which the record holds
  // One word to test, not three.
  const uint64_t special = static_cast<uint64_t>(thread->group_depth) | comm->marker_base |
                           captures_open.load(std::memory_order_relaxed);
  const ncclResult_t result = __builtin_expect(special != 0, 0)
                                  ? ObserveFully(real, thread, comm, info, caller, args...)
                                  : ObservePlain(real, thread, comm, info, caller, args...);
  if (__builtin_expect(result == ncclInProgress, 0)) RecordLateCall(thread, comm);
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
