// SPDX-License-Identifier: Apache-2.0
// A thread that its owner can leave behind.
//
// A system call on an unreachable file server may never return, and nothing can end a thread from
// outside. So the thread's body owns all that it uses (by shared pointers), and the owner waits for
// the thread only for a limited time.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <thread>
#include <utility>

#include "base/loose_threads.h"
#include "base/mutex.h"

namespace rollcall {

using SteadyTime = std::chrono::steady_clock::time_point;

inline SteadyTime After(int64_t ns) {
  return std::chrono::steady_clock::now() + std::chrono::nanoseconds(ns);
}

class LooseThread {
 public:
  LooseThread() = default;
  ~LooseThread() { Join(SteadyTime()); }
  LooseThread(const LooseThread&) = delete;
  LooseThread& operator=(const LooseThread&) = delete;

  // `body` must own, or share, all that it uses.
  void Start(std::function<void()> body) {
    thread_ = std::thread([end = end_, body = std::move(body),
                           mark = std::make_unique<LooseThreadMark>()] {
      body();
      const MutexLock lock(end->mutex);
      end->has_come = true;
      end->wake.NotifyAll();
    });
  }

  // Waits for the end of the body. Returns false if it has not ended by `deadline`.
  bool EndsBy(SteadyTime deadline) {
    if (!thread_.joinable()) return true;
    const MutexLock lock(end_->mutex);
    while (!end_->has_come && end_->wake.WaitUntil(end_->mutex, deadline)) {
    }
    return end_->has_come;
  }

  // Returns false if the body has not ended by `deadline`; then the thread is detached.
  bool Join(SteadyTime deadline) {
    if (!thread_.joinable()) return true;
    const bool ended = EndsBy(deadline);
    if (ended) {
      thread_.join();
    } else {
      thread_.detach();
    }
    return ended;
  }

 private:
  struct End {
    Mutex mutex;
    Condition wake;
    bool has_come ABSL_GUARDED_BY(mutex) = false;
  };
  const std::shared_ptr<End> end_ = std::make_shared<End>();
  std::thread thread_;
};

}  // namespace rollcall
