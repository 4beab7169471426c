// SPDX-License-Identifier: Apache-2.0
// The calls that a thread makes between ncclGroupStart and ncclGroupEnd. The library counts such a
// call as entered when the thread makes it, and as returned when the group ends.
//
// For wrappers and for the profiler plugin, on the thread that has the group open. Never allocates,
// locks, throws or changes errno. A thread's first group makes system calls.
#pragma once

#include "interpose/nccl_api.h"
#include "interpose/thread_state.h"

namespace rollcall {

// The communicator's part in the open group of this thread. nullptr if the thread's list is full.
// The thread's calls on this communicator then get no markers, and count as returned at once.
GroupComm* JoinGroup(ThreadState* thread, LocalComm* comm, cudaStream_t stream);

// Records that the calls of this thread's group have returned, or, on an error, have not happened.
void CloseGroup(ThreadState* thread, ncclResult_t result);

}  // namespace rollcall
