// SPDX-License-Identifier: Apache-2.0
#include "interpose/thread_state.h"

#include <sys/syscall.h>
#include <unistd.h>

namespace rollcall {

__thread ThreadState this_thread;

void ForgetThread() {
  this_thread.inside = false;
  this_thread.blocked_claimed = false;
  this_thread.blocked = nullptr;
  this_thread.last_comm = nullptr;
  this_thread.next_shape = 0;
  this_thread.kept_shape = 0;
  this_thread.group_depth = 0;
  this_thread.group_size = 0;
  this_thread.pending_size = 0;
  this_thread.lists = nullptr;
}

int32_t ThreadId() { return static_cast<int32_t>(syscall(SYS_gettid)); }

}  // namespace rollcall
