// SPDX-License-Identifier: Apache-2.0
// Finds a communicator by its handle: an ncclComm_t, or a number that this library uses as one.
//
// FindComm() and FindThreadComm() are for the hot path: no lock, no system call. BindHandle() and
// ForgetHandle() are for creation and teardown, from any thread. Only the child of a fork calls
// ForgetHandles().
#pragma once

#include "interpose/local_comm.h"
#include "interpose/nccl_api.h"
#include "interpose/thread_state.h"

namespace rollcall {

// Binds `handle` to `comm`, and removes an earlier binding of the same address.
void BindHandle(LocalComm* comm, const void* handle);
void ForgetHandle(LocalComm* comm);

// nullptr if no communicator has this handle.
LocalComm* FindComm(const void* handle);

// Does what FindComm() does, and records the communicator as the last one that the thread used.
inline LocalComm* FindThreadComm(ThreadState* thread, ncclComm_t handle) {
  LocalComm* comm = thread->last_comm;
  if (comm != nullptr && comm->handle.load(std::memory_order_relaxed) == handle) return comm;
  comm = FindComm(handle);
  thread->last_comm = comm;
  return comm;
}

// Removes all bindings. In a child of fork, which has one thread.
void ForgetHandles();

}  // namespace rollcall
