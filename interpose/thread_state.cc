// SPDX-License-Identifier: Apache-2.0
#include "interpose/old_glibc.h"

#include "interpose/thread_state.h"

#include <pthread.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>

// Before glibc 2.34 it lies in libpthread, which a program without threads may lack.
#pragma weak pthread_getcpuclockid

namespace rollcall {

__thread ThreadState this_thread;

namespace {

std::atomic<bool> clocks_name_threads{false};

int32_t AskKernel() { return static_cast<int32_t>(syscall(SYS_gettid)); }

// The C library makes the number of a thread's clock from the thread's id, without a system call
// (include/linux/posix-timers.h: the complement of the id, above three bits). 0 if it does not.
int32_t FromClock() {
  clockid_t clock = 0;
  if (&pthread_getcpuclockid == nullptr) return 0;
  if (pthread_getcpuclockid(pthread_self(), &clock) != 0 || clock >= 0) return 0;
  return ~(clock >> 3);
}

}  // namespace

void ForgetThread() {
  this_thread.inside = false;
  this_thread.polls = false;
  this_thread.messages_on = 0;
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

void LearnThreadIds() { clocks_name_threads.store(FromClock() == AskKernel()); }

int32_t ThreadId() {
  return clocks_name_threads.load(std::memory_order_relaxed) ? FromClock() : AskKernel();
}

}  // namespace rollcall
