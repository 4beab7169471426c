// SPDX-License-Identifier: Apache-2.0
// Finds a communicator by its handle (an ncclComm_t, or what stands in for one).
//
// FindComm() and FindThreadComm() are for the hot path: no lock, no system call. BindHandle() and
// ForgetHandle() are for creation and teardown, from any thread. ForgetHandles() is for the child of
// a fork alone.
#pragma once

#include "interpose/local_comm.h"
#include "interpose/nccl_api.h"
#include "interpose/thread_state.h"

namespace rollcall {

// Makes `handle` known as `comm`; it forgets any earlier owner of the address.
void BindHandle(LocalComm* comm, const void* handle);
void ForgetHandle(LocalComm* comm);

// nullptr when the handle is not known.
LocalComm* FindComm(const void* handle);

// The same, and remembers the communicator as the one that the thread used last.
inline LocalComm* FindThreadComm(ThreadState* thread, ncclComm_t handle) {
  LocalComm* comm = thread->last_comm;
  if (comm != nullptr && comm->handle.load(std::memory_order_relaxed) == handle) return comm;
  comm = FindComm(handle);
  thread->last_comm = comm;
  return comm;
}

// In a child of fork, single-threaded.
void ForgetHandles();

}  // namespace rollcall
