// SPDX-License-Identifier: Apache-2.0
// Records that NCCL has created a communicator, or has failed to.
//
// For the wrappers of calls that create communicators, end groups or ask for errors, on the thread
// that makes the call, inside it (ThreadState::inside). These functions ask NCCL and the driver for
// facts. They never wait for another rank, and never change errno.
#pragma once

#include "interpose/local_comm.h"
#include "interpose/nccl_api.h"
#include "interpose/thread_state.h"

namespace rollcall {

// Records the version of NCCL, once in a process.
void RecordNcclVersion();

// Records the result of a creation. `handle` is the new communicator; nullptr if NCCL made none, or
// this rank is not a member. With ncclInProgress the communicator is not ready yet.
void RecordCreated(LocalComm* comm, ncclComm_t handle, ncclResult_t result);

// Binds the handles of the communicators that the ending group has created.
void BindPending(ThreadState* thread, ncclResult_t result);

// `state` is what ncclCommGetAsyncError returned; `since` is LateSince() from before that call.
void RecordAsyncError(LocalComm* comm, ncclComm_t handle, ncclResult_t state, uint64_t since);

}  // namespace rollcall
