// SPDX-License-Identifier: Apache-2.0
// Records groups of calls. The library counts a call inside a group as entered when the program
// makes it. NCCL runs the call, which may block the host, when the outermost group ends.
//
// The wrappers of the calls that begin and end a group use this, on the thread that makes them.
#pragma once

#include "interpose/calls/observe.h"
#include "interpose/record/group_lists.h"
#include "interpose/record/lifecycle.h"
#include "interpose/record/recording.h"

namespace rollcall {

// One non-blocking communicator makes NCCL launch the whole group later, and ncclCommGetAsyncError
// reports the progress of non-blocking communicators only.
inline bool LaunchesLater(const ThreadState* thread) {
  for (int i = 0; i < thread->group_size; ++i) {
    if (thread->lists->group[i].comm->non_blocking) return true;
  }
  return false;
}

// `mark(comm, stream, collectives, p2p)` takes the arguments of PlaceMarkers().
template <typename Mark>
void MarkGroup(const ThreadState* thread, MarkerPoint point, Mark mark) {
  for (int i = 0; i < thread->group_size; ++i) {
    const GroupComm& part = thread->lists->group[i];
    if (part.capture != 0) {
      if (part.graph != nullptr) MarkCaptured(part.comm, part.stream, part.graph, point);
      continue;
    }
    if (!HasMarkers(part.comm)) continue;
    const segment::CommEntry* entry = part.comm->entry;
    const uint64_t entered = Get(entry->entered);
    const uint64_t p2p = Get(entry->p2p_entered);
    mark(part.comm, part.stream, entered == part.entered ? 0 : entered,
         p2p == part.p2p_entered ? 0 : p2p);
  }
}

inline void MarkGroupBefore(const ThreadState* thread) {
  const bool later = LaunchesLater(thread);
  MarkGroup(thread, MarkerPoint::kStarted,
            [later](LocalComm* comm, void* stream, uint64_t collectives, uint64_t p2p) {
              if (later && !comm->non_blocking) return SwitchMarkersOff(comm);
              MarkBefore(comm, stream, collectives, p2p);
            });
}

inline void MarkGroupAfter(const ThreadState* thread) {
  MarkGroup(thread, MarkerPoint::kFinished, MarkAfter);
}

inline void ForgetGroup(ThreadState* thread) {
  thread->group_size = 0;
  thread->group_depth = 0;
}

// `launches` is false for ncclGroupSimulateEnd, which discards the group.
template <typename Function, typename... Args>
auto EndGroup(Function* real, ThreadState* thread, Op op, bool launches, Args... args) {
  const LocalComm* first = thread->group_size > 0 ? thread->lists->group[0].comm : nullptr;
  const Blocked blocked(thread, op, first, nullptr, Now());
  if (launches) MarkGroupBefore(thread);
  const auto answer = real(args...);
  const ncclResult_t result = ToNccl(answer);
  CloseGroup(thread, launches ? result : ncclInvalidUsage);
  if (launches && result == ncclSuccess) MarkGroupAfter(thread);
  BindPending(thread, result);
  return answer;
}

inline void RecordLateGroup(const ThreadState* thread) {
  for (int i = 0; i < thread->group_size; ++i) {
    const GroupComm& part = thread->lists->group[i];
    if (part.comm->non_blocking) RecordLateCalls(thread, part.comm, part.recorded);
  }
}

// Records the end of a group, which runs its calls if it is the outermost one.
template <typename Function, typename... Args>
auto ObserveGroupEnd(Function* real, Op op, bool launches, Args... args)
    -> decltype(real(args...)) {
  if (real == nullptr) return ncclSystemError;
  ThreadState* thread = &this_thread;
  if (thread->inside || !Recording()) return real(args...);
  if (thread->group_depth > 1) {
    --thread->group_depth;
    return real(args...);
  }
  const InsideCall inside(thread);
  const auto result = EndGroup(real, thread, op, launches, args...);
  if (launches && ToNccl(result) == ncclInProgress) RecordLateGroup(thread);
  ForgetGroup(thread);
  return result;
}

template <typename Function>
auto ObserveGroupStart(Function* real) -> decltype(real()) {
  if (real == nullptr) return ncclSystemError;
  ThreadState* thread = &this_thread;
  if (thread->inside || !StartRecording()) return real();
  const InsideCall inside(thread);
  const auto result = real();
  if (ToNccl(result) != ncclSuccess) return result;
  if (thread->group_depth++ == 0) {
    thread->group_size = 0;
    if (++thread->group_number == 0) thread->group_number = 1;
  }
  return result;
}

}  // namespace rollcall
