// SPDX-License-Identifier: Apache-2.0
// A system that refuses threads.
#pragma once

#include <gtest/gtest.h>
#include <pthread.h>

#include <cstddef>

namespace rollcall {

// While it lives, this process cannot start a thread: the stack of each would be larger than all
// memory. A limit of processes (RLIMIT_NPROC) would not bind root.
class NoMoreThreads {
 public:
  NoMoreThreads() {
    pthread_attr_t attributes;
    EXPECT_EQ(pthread_getattr_default_np(&attributes), 0);
    EXPECT_EQ(pthread_attr_getstacksize(&attributes, &usual_), 0);
    Set(&attributes, size_t{1} << 46);
  }
  ~NoMoreThreads() {
    pthread_attr_t attributes;
    EXPECT_EQ(pthread_getattr_default_np(&attributes), 0);
    Set(&attributes, usual_);
  }
  NoMoreThreads(const NoMoreThreads&) = delete;
  NoMoreThreads& operator=(const NoMoreThreads&) = delete;

 private:
  static void Set(pthread_attr_t* attributes, size_t stack_bytes) {
    EXPECT_EQ(pthread_attr_setstacksize(attributes, stack_bytes), 0);
    EXPECT_EQ(pthread_setattr_default_np(attributes), 0);
    pthread_attr_destroy(attributes);
  }

  size_t usual_ = 0;
};

}  // namespace rollcall
