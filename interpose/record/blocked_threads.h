// SPDX-License-Identifier: Apache-2.0
// Which threads are inside a call that may block, and since when.
//
// The hot path uses Blocked: it stores four words of the thread's own entry at the start of a call,
// and one at the end. The thread's first call claims the entry. When no entry is free, the library
// counts the thread as lost and records its calls without an entry.
#pragma once

#include "interpose/local_comm.h"
#include "interpose/ops.h"
#include "interpose/thread_state.h"

namespace rollcall {

// Claims an entry for the calling thread. Returns nullptr, and counts the thread, if none is free.
segment::BlockedEntry* ClaimBlockedEntry();

// The thread's entry. The thread's first call claims the entry and sets `thread_id`.
inline segment::BlockedEntry* ClaimedEntry(ThreadState* thread) {
  if (__builtin_expect(!thread->blocked_claimed, 0)) {
    thread->blocked = ClaimBlockedEntry();
    thread->thread_id = static_cast<uint32_t>(ThreadId());
    thread->blocked_claimed = true;
  }
  return thread->blocked;
}

// Marks this thread as inside `op` since `since` (ticks), until this object goes out of scope.
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

// Whether a thread is inside a call on `comm`, and so will still write there: a call may return
// after the call that aborts its communicator.
bool IsInCall(const LocalComm* comm);

}  // namespace rollcall
