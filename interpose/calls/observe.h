// SPDX-License-Identifier: Apache-2.0
// Records a call around the real function: that a thread is inside the call, that the communicator
// enters and leaves it, and its arguments. Places the GPU's markers.
//
// For the wrappers (calls_*.cc), on the thread that makes the call. Nothing here allocates, locks,
// throws or changes errno. An ungrouped call on a communicator without markers, while no stream is
// being captured, makes no system call except the clock's, if the CPU has no usable counter.
#pragma once

#include "interpose/record/blocked_threads.h"
#include "interpose/record/call_record.h"
#include "interpose/record/graph_launches.h"
#include "interpose/record/grouped.h"
#include "interpose/record/groups.h"
#include "interpose/record/handle_table.h"
#include "interpose/record/late.h"
#include "interpose/record/markers.h"
#include "interpose/recorder.h"

namespace rollcall {

// The result of a call in NCCL's words. Other libraries return ints, with 0 for success.
inline ncclResult_t ToNccl(ncclResult_t result) { return result; }
inline ncclResult_t ToNccl(int result) { return result == 0 ? ncclSuccess : ncclSystemError; }

template <typename Function, typename... Args>
__attribute__((noinline, cold)) auto ObserveCaptured(Function* real, ThreadState* thread,
                                                     LocalComm* comm, CallInfo info,
                                                     const void* caller, uint64_t capture,
                                                     Args... args) {
  const Blocked blocked(thread, info.op, comm, info.stream, Now());
  const CapturedRecord captured = BeginCaptured(thread, comm, info, caller, capture);
  const auto result = real(args...);
  EndCaptured(thread, comm, info, captured, ToNccl(result));
  return result;
}

// An ungrouped call on a communicator without markers, while no stream is being captured.
template <typename Function, typename... Args>
ROLLCALL_HOT auto ObservePlain(Function* real, ThreadState* thread, LocalComm* comm,
                               const CallInfo& info, const void* caller, Args... args) {
  const uint64_t now = Now();
  const OpenRecord open = BeginRecord(thread, comm, info, now, caller, false);
  const Blocked blocked(thread->blocked, info.op, comm, info.stream, now);
  const auto result = real(args...);
  EndRecord(comm, open, ToNccl(result), false);
  return result;
}

// Any call.
template <typename Function, typename... Args>
ROLLCALL_HOT auto ObserveFully(Function* real, ThreadState* thread, LocalComm* comm,
                               const CallInfo& info, const void* caller, Args... args) {
  const uint64_t now = Now();
  const bool grouped = IsGrouped(thread, comm);
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
  const auto result = real(args...);
  EndRecord(comm, open, ToNccl(result), grouped && part != nullptr);
  if (marked && ToNccl(result) == ncclSuccess) MarkAfter(comm, info.stream, collectives, p2p);
  return result;
}

// Records a call on a communicator.
template <typename Function, typename... Args>
ROLLCALL_HOT auto ObserveCall(Function* real, ncclComm_t handle, const CallInfo& info,
                              const void* caller, Args... args) -> decltype(real(args...)) {
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
  ClaimedEntry(thread);  // sets the thread's id, which the record holds
  // Combines three conditions, so that the hot path has one branch.
  const uint64_t special = static_cast<uint64_t>(thread->group_depth) | comm->marker_base |
                           captures_open.load(std::memory_order_relaxed);
  const auto result = __builtin_expect(special != 0, 0)
                          ? ObserveFully(real, thread, comm, info, caller, args...)
                          : ObservePlain(real, thread, comm, info, caller, args...);
  if (__builtin_expect(ToNccl(result) == ncclInProgress, 0)) RecordLateCall(thread, comm);
  return result;
}

// Records a call that waits for no other rank, but may block in the driver.
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

// The code of a missing library in CUDA (cudaErrorSharedObjectInitFailed), in the driver and in
// HIP.
inline constexpr int kLibraryMissing = 303;

// Records a call that waits for the GPU. A process that has not called NCCL has no segment, and
// pays one load.
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
