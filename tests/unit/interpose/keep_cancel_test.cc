// SPDX-License-Identifier: Apache-2.0
#include "interpose/keep_cancel.h"

#include <gnu/libc-version.h>
#include <gtest/gtest.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace rollcall {
namespace {

// What glibc sends to a thread that is to be cancelled, from within this process.
constexpr int kSigCancel = 32;

void* WaitForEver(void*) {
  for (;;) pause();
}

// glibc installs its handler in the first pthread_cancel.
void InstallTheHandler() {
  pthread_t thread;
  ASSERT_EQ(pthread_create(&thread, nullptr, WaitForEver, nullptr), 0);
  pthread_cancel(thread);
  pthread_join(thread, nullptr);
}

int GlibcMinor() {
  int major = 0, minor = 0;
  sscanf(gnu_get_libc_version(), "%d.%d", &major, &minor);
  return minor;
}

struct Reached {
  bool end_of_scope = false;
  bool after_scope = false;
};

void* IsCancelledWithinAScope(void* reached) {
  pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, nullptr);
  {
    const KeepCancel keep_cancel;
    // The signal of a canceller that decided before the scope.
    syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), kSigCancel);
    static_cast<Reached*>(reached)->end_of_scope = true;
  }
  static_cast<Reached*>(reached)->after_scope = true;
  return nullptr;
}

TEST(KeepCancelTest, ASignalThatArrivesLateCancelsTheThreadAfterTheScope) {
  // https://sourceware.org/git/?p=glibc.git, nptl/pthread_cancel.c, sigcancel_handler
  if (GlibcMinor() >= 41)
    GTEST_SKIP() << "this glibc cancels by a flag: a late signal alone does nothing";
  InstallTheHandler();
  pthread_t thread;
  Reached reached;
  void* result = nullptr;
  ASSERT_EQ(pthread_create(&thread, nullptr, IsCancelledWithinAScope, &reached), 0);
  pthread_join(thread, &result);
  EXPECT_TRUE(reached.end_of_scope);
  EXPECT_FALSE(reached.after_scope);
  EXPECT_EQ(result, PTHREAD_CANCELED);
}

void* KeepsWhatItFinds(void*) {
  int state = 0;
  int type = 0;
  pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, nullptr);
  {
    const KeepCancel keep_cancel;
  }
  pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &type);
  EXPECT_EQ(type, PTHREAD_CANCEL_ASYNCHRONOUS);
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
  EXPECT_EQ(state, PTHREAD_CANCEL_ENABLE);
  {
    const KeepCancel keep_cancel;
  }
  pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &state);
  EXPECT_EQ(state, PTHREAD_CANCEL_DISABLE);
  return nullptr;
}

TEST(KeepCancelTest, RestoresStateAndType) {
  pthread_t thread;
  ASSERT_EQ(pthread_create(&thread, nullptr, KeepsWhatItFinds, nullptr), 0);
  pthread_join(thread, nullptr);
}

}  // namespace
}  // namespace rollcall
