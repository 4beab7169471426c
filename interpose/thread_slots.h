// SPDX-License-Identifier: Apache-2.0
// Tables with a place for each thread, which keeps it until it ends. Nobody is told that a thread
// has ended: when the table is full, the places of those that are gone are given out again.
//
// For the thread that needs the place, once: it makes system calls, takes no lock and keeps errno.
#pragma once

#include <sys/syscall.h>
#include <unistd.h>

#include "interpose/keep_errno.h"
#include "interpose/segment.h"

namespace rollcall {

// A place for the calling thread; -1: none is free. `owner_of(i)` is a pointer to the id of place
// i's thread, 0 while it is free. Makes system calls, once a thread.
template <typename OwnerOf>
int ClaimThreadSlot(int places, OwnerOf owner_of) {
  const KeepErrno keep_errno;
  const auto tid = static_cast<uint32_t>(syscall(SYS_gettid));
  for (int reclaim = 0; reclaim < 2; ++reclaim) {
    for (int i = 0; i < places; ++i) {
      segment::HalfWord* owner = owner_of(i);
      uint32_t seen = owner->load(std::memory_order_relaxed);
      const bool gone = seen != 0 && reclaim != 0 &&
                        syscall(SYS_tgkill, getpid(), static_cast<int>(seen), 0) != 0;
      if (seen != 0 && !gone) continue;
      if (owner->compare_exchange_strong(seen, tid)) return i;
    }
  }
  return -1;
}

}  // namespace rollcall
