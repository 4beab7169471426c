// SPDX-License-Identifier: Apache-2.0
// The calls that a thread makes between ncclGroupStart and ncclGroupEnd: they are entered when they
// are made, and return when the group ends.
//
// For wrappers and for the profiler's plugin, on the thread that has the group open. Never
// allocates, locks, throws or changes errno; a thread's first group makes system calls.
#pragma once

#include "interpose/nccl_api.h"
#include "interpose/thread_state.h"

namespace rollcall {

// The communicator's part in the group that this thread has open; nullptr: the
// thread's list is full, and its calls go on without markers, and return when they are made.
GroupComm* JoinGroup(ThreadState* thread, LocalComm* comm, cudaStream_t stream);

// The calls of this thread's group have returned, or not happened.
void CloseGroup(ThreadState* thread, ncclResult_t result);

}  // namespace rollcall
