// SPDX-License-Identifier: Apache-2.0
// The lists of a thread's open group. They are too large for thread-local storage, so they lie in a
// table. A thread claims a slot of the table with its first group.
//
// For the hot path, on the thread that has the group open. Any thread may call GroupHasCalls(). The
// child of a fork calls ForgetGroupLists(). Only the claim of a slot makes system calls; nothing
// here allocates or locks.
#pragma once

#include "interpose/thread_state.h"

namespace rollcall {

struct alignas(64) GroupLists {
  segment::HalfWord owner;  // thread id; 0 if the slot is free
  GroupComm group[kGroupComms];
  PendingComm pending[kGroupComms];
};

// Claims a slot for the thread. nullptr if all are in use.
GroupLists* ClaimGroupLists(ThreadState* thread);

inline GroupLists* EnsureGroupLists(ThreadState* thread) {
  return __builtin_expect(thread->lists != nullptr, 1) ? thread->lists : ClaimGroupLists(thread);
}

// Whether the open group of `thread`, or its last one, has calls on the communicator.
bool GroupHasCalls(uint32_t thread, const LocalComm* comm);

// Frees all slots, in a child of fork.
void ForgetGroupLists();

}  // namespace rollcall
