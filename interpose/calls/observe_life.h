// SPDX-License-Identifier: Apache-2.0
// Records the calls, the creation and the end of a communicator of a library that is like NCCL:
// HCCL, oneCCL.
//
// The wrappers use this, on the thread that makes the call. Nothing is asked of a GPU: these
// communicators have no markers.
#pragma once

#include "interpose/calls/observe.h"
#include "interpose/comm_kind.h"
#include "interpose/real.h"
#include "interpose/record/blocked_threads.h"
#include "interpose/record/comm_ids.h"
#include "interpose/record/comm_table.h"
#include "interpose/record/handle_table.h"
#include "interpose/record/recording.h"

namespace rollcall {

// Whether the wrapper records this creation: the program makes it, and recording is on.
inline bool IsOwnCreation() { return !this_thread.inside && StartRecording(); }

inline void RecordAnswer(LocalComm* comm, const void* handle, int result) {
  if (result != 0) {
    SetState(comm, segment::CommState::kFailed);
  } else if (handle == nullptr) {
    SetState(comm, segment::CommState::kPassedOver);
  } else {
    BindHandle(comm, handle);
    SetState(comm, segment::CommState::kReady);
  }
}

// Records a call by which `real` creates a communicator and stores its handle in `*handle`.
// `learn(comm, handle)` fills in what is known only afterwards.
template <typename Learn, typename Function, typename... Args>
int ObserveNewComm(Function* real, CommKind kind, Op op, const NewComm& what, void** handle,
                   Learn learn, Args... args) {
  ThreadState* thread = &this_thread;
  const InsideCall inside(thread);
  LocalComm* comm = AddComm(what);
  if (comm == nullptr) return real(args...);
  comm->entry->kind.store(static_cast<uint32_t>(kind), std::memory_order_relaxed);
  const Blocked blocked(thread, op, comm, nullptr, Now());
  const int result = real(args...);
  if (result == 0 && *handle != nullptr) learn(comm, *handle);
  RecordAnswer(comm, result == 0 ? *handle : nullptr, result);
  return result;
}

inline void LearnNothing(const LocalComm*, const void*) {}

// Records a call by which `real` ends a communicator.
template <typename Function>
int ObserveEndOfComm(Function* real, Op op, void* handle) {
  if (real == nullptr) return ncclSystemError;
  ThreadState* thread = &this_thread;
  LocalComm* comm = thread->inside || !Recording() ? nullptr : FindComm(handle);
  if (comm == nullptr) return real(handle);
  const InsideCall inside(thread);
  SetState(comm, segment::CommState::kFinalizing);
  ForgetHandle(comm);
  const Blocked blocked(thread, op, comm, nullptr, Now());
  const int result = real(handle);
  if (result == 0) {
    SetState(comm, segment::CommState::kDestroyed);
  } else {
    BindHandle(comm, handle);
    SetState(comm, segment::CommState::kReady);
  }
  return result;
}

}  // namespace rollcall

// The wrapper of a call that goes to a stream: what a table such as hccl_calls.def has in a row.
#define ROLLCALL_ENQUEUED(symbol, op, dtype, reduction, peer, count, parameters, arguments)     \
  extern "C" ROLLCALL_EXPORT int symbol(parameters) {                                           \
    const rollcall::CallInfo info = {                                                           \
        rollcall::Op::k##op, dtype, reduction, peer, count, static_cast<cudaStream_t>(stream)}; \
    return rollcall::ObserveCall(ROLLCALL_REAL(symbol), static_cast<ncclComm_t>(comm), info,    \
                                 __builtin_return_address(0), arguments);                       \
  }
