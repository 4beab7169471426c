// SPDX-License-Identifier: Apache-2.0
// What non-blocking communicators do after a call has returned (ncclInProgress), until
// ncclCommGetAsyncError says that it is done: the host still waits for the call, and its second
// marker still has to be placed.
//
// For wrappers. Any thread may learn that the call is done. Only the thread that made the call may
// place its marker, because it has the stream in its hands: elsewhere the stream may be captured or
// gone by then. Nothing here waits, locks or allocates.
#pragma once

#include "interpose/local_comm.h"
#include "interpose/ops.h"
#include "interpose/thread_state.h"

namespace rollcall {

// The calls on this communicator from this record on, made by `thread`, are on their way.
void RecordLateCalls(const ThreadState* thread, LocalComm* comm, uint64_t first_record);

// The newest call on the communicator has returned ncclInProgress. In a group that says nothing yet.
void RecordLateCall(const ThreadState* thread, LocalComm* comm);

// The same of its creation or end, by `op`. It leads to this state; kEmpty: somebody else sets
// that.
void RecordLateChange(const ThreadState* thread, LocalComm* comm, Op op,
                      segment::CommState end_state);

// What the communicator is on its way with; to be asked before NCCL is asked how far it is. 0:
// nothing.
inline uint64_t LateSince(const LocalComm* comm) {
  return comm->late.since.load(std::memory_order_acquire);
}

// `thread` is told that the communicator is done with what it was given at `since`, or (`launched`
// is false) has failed. Thread 0: nobody is told any more, for it is gone.
void EndLate(LocalComm* comm, uint64_t since, uint32_t thread, bool launched);

}  // namespace rollcall
