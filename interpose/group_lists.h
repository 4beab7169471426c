// SPDX-License-Identifier: Apache-2.0
// What a thread remembers while it has a group open. Too much for its thread-local storage, so it
// lies in a table, where the thread claims a place with its first group.
//
// For the hot path, on the thread that has the group open; GroupNames() from any thread;
// ForgetGroupLists() for the child of a fork. Only the claim of a place makes system calls; nothing
// here allocates or locks.
#pragma once

#include "interpose/thread_state.h"

namespace rollcall {

struct alignas(64) GroupLists {
  segment::HalfWord owner;  // thread; 0: free
  GroupComm group[kGroupComms];
  PendingComm pending[kGroupComms];
};

// Gives the thread a place. nullptr: none is free.
GroupLists* ClaimGroupLists(ThreadState* thread);

inline GroupLists* EnsureGroupLists(ThreadState* thread) {
  return __builtin_expect(thread->lists != nullptr, 1) ? thread->lists : ClaimGroupLists(thread);
}

// Whether the group that this thread has open, or had last, has calls on the communicator.
bool GroupNames(uint32_t thread, const LocalComm* comm);

// In a child of fork.
void ForgetGroupLists();

}  // namespace rollcall
