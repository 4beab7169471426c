// SPDX-License-Identifier: Apache-2.0
// Tables with a slot for each thread. Nothing reports that a thread has ended: when the table is
// full, a claim reuses the slots of threads that have ended.
//
// For the thread that needs the slot, once. Makes system calls only if the table is full, takes no
// lock and keeps errno.
#pragma once

#include <sys/syscall.h>
#include <unistd.h>

#include "interpose/keep_errno.h"
#include "interpose/segment.h"
#include "interpose/thread_state.h"

namespace rollcall {

// Claims a slot for the calling thread; -1 if all are in use. `owner_of(i)` points to the id of the
// thread that owns slot i, 0 while the slot is free.
template <typename OwnerOf>
int ClaimThreadSlot(int slots, OwnerOf owner_of) {
  const KeepErrno keep_errno;
  const auto tid = static_cast<uint32_t>(ThreadId());
  for (int reclaim = 0; reclaim < 2; ++reclaim) {
    for (int i = 0; i < slots; ++i) {
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
