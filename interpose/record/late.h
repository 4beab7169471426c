// SPDX-License-Identifier: Apache-2.0
// Late calls: calls on a non-blocking communicator that return ncclInProgress and complete later.
// Until ncclCommGetAsyncError reports the end, the host still waits for the call, and the library
// has not placed its second marker.
//
// Wrappers use this. Any thread may report the end of a late call. Only the thread that made the
// call may place the marker: that thread owns the stream at that moment, and elsewhere the stream
// may be in a capture or destroyed. Nothing here waits, locks or allocates.
#pragma once

#include "interpose/local_comm.h"
#include "interpose/ops.h"
#include "interpose/thread_state.h"

namespace rollcall {

// Records that the calls on this communicator from `first_record` on, made by `thread`, are late.
void RecordLateCalls(const ThreadState* thread, LocalComm* comm, uint64_t first_record);

// Records that the newest call on the communicator returned ncclInProgress. Does nothing in a
// group, whose calls NCCL starts when the group ends.
void RecordLateCall(const ThreadState* thread, LocalComm* comm);

// Records that the creation or the end of the communicator, by `op`, is late. `end_state` is the
// state after it; kEmpty: another function sets that state.
void RecordLateStateChange(const ThreadState* thread, LocalComm* comm, Op op,
                           segment::CommState end_state);

// The time at which the late call of the communicator began, in ticks, or 0. Read it before asking
// NCCL for the result, and pass it to EndLateCall().
inline uint64_t LateSince(const LocalComm* comm) {
  return comm->late.since.load(std::memory_order_acquire);
}

// `thread` reports that the late call that began at `since` has completed, or (`launched` is false)
// has failed. Thread 0 means that the communicator has ended, so NCCL reports no result.
void EndLateCall(LocalComm* comm, uint64_t since, uint32_t thread, bool launched);

}  // namespace rollcall
