// SPDX-License-Identifier: Apache-2.0
// What the library records when a communicator of NCCL's has been created, or has failed.
//
// For the wrappers of calls that create communicators, end groups or ask for errors, on the thread
// that makes the call, inside it (ThreadState::inside): these functions ask NCCL and the driver for
// facts. They never wait for another rank, and never change errno.
#pragma once

#include "interpose/local_comm.h"
#include "interpose/nccl_api.h"
#include "interpose/thread_state.h"

namespace rollcall {

// The version of NCCL, once a process.
void RecordNcclVersion();

// The communicator is there (or, if non-blocking, on its way) under `handle`; nullptr: it is not, or
// this rank is no member.
void RecordCreated(LocalComm* comm, ncclComm_t handle, ncclResult_t result);

// Binds the handles of communicators whose creation the ending group held.
void BindPending(ThreadState* thread, ncclResult_t result);

// `state` is what ncclCommGetAsyncError returned; `since` is LateSince() before that was asked.
void RecordAsyncError(LocalComm* comm, ncclComm_t handle, ncclResult_t state, uint64_t since);

}  // namespace rollcall
