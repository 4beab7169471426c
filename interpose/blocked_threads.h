// SPDX-License-Identifier: Apache-2.0
// Which threads are inside a call that may block, and since when.
//
// Blocked is for the hot path: it stores four words of the thread's own entry, and one at the end.
// The thread's first call claims the entry, with system calls. When all entries are taken the thread
// is counted as lost, and its calls are recorded without it.
#pragma once

#include "interpose/local_comm.h"
#include "interpose/ops.h"
#include "interpose/thread_state.h"

namespace rollcall {

// Claims a slot of the blocked table for the calling thread; nullptr: none is free (counted).
segment::BlockedEntry* ClaimBlockedEntry();

// The thread's slot, claimed with its first call. Gives the thread its number too.
inline segment::BlockedEntry* ClaimedEntry(ThreadState* thread) {
  if (__builtin_expect(!thread->blocked_claimed, 0)) {
    thread->blocked = ClaimBlockedEntry();
    thread->thread_id = static_cast<uint32_t>(ThreadId());
    thread->blocked_claimed = true;
  }
  return thread->blocked;
}

// Records that this thread is inside `op` since `since`, until it goes out of scope.
class Blocked {
 public:
  Blocked(ThreadState* thread, Op op, const LocalComm* comm, const void* stream, uint64_t since)
      : Blocked(ClaimedEntry(thread), op, comm, stream, since) {}
  Blocked(segment::BlockedEntry* entry, Op op, const LocalComm* comm, const void* stream,
          uint64_t since)
      : entry_(entry) {
    if (entry_ == nullptr) return;
    entry_->op.store(static_cast<uint32_t>(op), std::memory_order_relaxed);
    entry_->comm.store(comm == nullptr ? segment::kNoComm : comm->index, std::memory_order_relaxed);
    entry_->stream.store(reinterpret_cast<uintptr_t>(stream), std::memory_order_relaxed);
    entry_->since.store(since, std::memory_order_release);
  }
  ~Blocked() {
    if (entry_ != nullptr) entry_->since.store(0, std::memory_order_release);
  }
  Blocked(const Blocked&) = delete;
  Blocked& operator=(const Blocked&) = delete;

 private:
  segment::BlockedEntry* entry_;
};

// Whether a thread is inside a call on it, and will record there how that went: a call may return
// after the one that aborts its communicator.
bool IsInCall(const LocalComm* comm);

}  // namespace rollcall
