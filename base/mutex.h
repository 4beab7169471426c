// SPDX-License-Identifier: Apache-2.0
// A mutex that clang checks (-Wthread-safety), and a condition to wait for.
//
// Waits are on the steady clock: a change of the wall clock makes none of them shorter or longer.
// absl::Mutex waits by the wall clock, and clang cannot check std::mutex.
//
//   class Mailbox {
//    public:
//     void Put(Letter letter) {
//       const MutexLock lock(mutex_);
//       letters_.push_back(std::move(letter));
//       has_come_.NotifyOne();
//     }
//     std::vector<Letter> TakeAll(std::chrono::steady_clock::time_point deadline) {
//       const MutexLock lock(mutex_);
//       while (letters_.empty() && has_come_.WaitUntil(mutex_, deadline)) {
//       }
//       return std::exchange(letters_, {});
//     }
//
//    private:
//     Mutex mutex_;
//     Condition has_come_;
//     std::vector<Letter> letters_ ABSL_GUARDED_BY(mutex_);
//   };
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

#include "absl/base/thread_annotations.h"

namespace rollcall {

class ABSL_LOCKABLE Mutex {
 public:
  void Lock() ABSL_EXCLUSIVE_LOCK_FUNCTION() ABSL_NO_THREAD_SAFETY_ANALYSIS { mutex_.lock(); }
  void Unlock() ABSL_UNLOCK_FUNCTION() ABSL_NO_THREAD_SAFETY_ANALYSIS { mutex_.unlock(); }
  // Tells clang that the caller's caller holds the mutex, where a declaration cannot, because the
  // mutex is not visible there. Checks nothing.
  void AssertHeld() const ABSL_ASSERT_EXCLUSIVE_LOCK() {}

 private:
  friend class Condition;
  std::mutex mutex_;
};

// Holds the mutex from its construction to its end, but not between Unlock() and Lock().
class ABSL_SCOPED_LOCKABLE MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) ABSL_EXCLUSIVE_LOCK_FUNCTION(mutex) : mutex_(mutex) {
    mutex_.Lock();
  }
  ~MutexLock() ABSL_UNLOCK_FUNCTION() {
    if (is_held_) mutex_.Unlock();
  }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

  void Lock() ABSL_EXCLUSIVE_LOCK_FUNCTION() ABSL_NO_THREAD_SAFETY_ANALYSIS {
    mutex_.Lock();
    is_held_ = true;
  }
  void Unlock() ABSL_UNLOCK_FUNCTION() ABSL_NO_THREAD_SAFETY_ANALYSIS {
    is_held_ = false;
    mutex_.Unlock();
  }

 private:
  Mutex& mutex_;
  bool is_held_ = true;
};

// All who wait at one time give the same mutex. A wait releases it, and may end without a cause:
// the caller loops until what it waits for has come. The loop is the caller's, because clang does
// not check a lambda for the mutexes of the function around it.
class Condition {
 public:
  void Wait(Mutex& mutex) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    Held held(mutex);
    condition_.wait(held.lock);
  }
  // Returns false if the deadline has passed.
  bool WaitUntil(Mutex& mutex, std::chrono::steady_clock::time_point deadline)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    Held held(mutex);
    return condition_.wait_until(held.lock, deadline) == std::cv_status::no_timeout;
  }
  // Returns false if so much time has passed. A loop that must end needs WaitUntil().
  bool WaitFor(Mutex& mutex, std::chrono::nanoseconds time) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    return WaitUntil(mutex, std::chrono::steady_clock::now() + time);
  }

  void NotifyOne() { condition_.notify_one(); }
  void NotifyAll() { condition_.notify_all(); }

 private:
  // The caller's hold of the mutex, in the form that the standard library wants.
  struct Held {
    explicit Held(Mutex& mutex) : lock(mutex.mutex_, std::adopt_lock) {}
    ~Held() { lock.release(); }
    std::unique_lock<std::mutex> lock;
  };

  std::condition_variable condition_;
};

}  // namespace rollcall
