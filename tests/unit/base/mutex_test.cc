// SPDX-License-Identifier: Apache-2.0
#include "base/mutex.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

namespace rollcall {
namespace {

using std::chrono::steady_clock;

class Door {
 public:
  void Open() {
    const MutexLock lock(mutex_);
    is_open_ = true;
    changed_.NotifyAll();
  }
  void PassBy(steady_clock::time_point deadline) {
    const MutexLock lock(mutex_);
    ++waiting_;
    changed_.NotifyAll();
    while (!is_open_ && changed_.WaitUntil(mutex_, deadline)) {
    }
    if (is_open_) ++passed_;
  }
  void AwaitWaiting(int count) {
    const MutexLock lock(mutex_);
    while (waiting_ < count) changed_.Wait(mutex_);
  }
  int passed() {
    const MutexLock lock(mutex_);
    return passed_;
  }

 private:
  Mutex mutex_;
  Condition changed_;
  bool is_open_ ABSL_GUARDED_BY(mutex_) = false;
  int waiting_ ABSL_GUARDED_BY(mutex_) = 0;
  int passed_ ABSL_GUARDED_BY(mutex_) = 0;
};

TEST(ConditionTest, WakesAllWhoWait) {
  Door door;
  const auto pass = [&door] { door.PassBy(steady_clock::time_point::max()); };
  std::thread one(pass), other(pass);
  door.AwaitWaiting(2);  // a wait has begun: it is the only thing that gives the mutex free
  EXPECT_EQ(door.passed(), 0);
  door.Open();
  one.join();
  other.join();
  EXPECT_EQ(door.passed(), 2);
}

TEST(ConditionTest, DoesNotWaitPastTheDeadline) {
  Door door;
  door.PassBy(steady_clock::now());
  EXPECT_EQ(door.passed(), 0);
}

TEST(ConditionTest, HoldsTheMutexAfterAWait) {
  Mutex mutex;
  Condition condition;
  int count = 0;
  MutexLock lock(mutex);
  EXPECT_FALSE(condition.WaitFor(mutex, std::chrono::nanoseconds(-1)));
  std::thread other([&] {
    const MutexLock in_thread(mutex);
    count = 2;
    condition.NotifyOne();
  });
  EXPECT_EQ(count, 0);
  while (count == 0) condition.Wait(mutex);
  EXPECT_EQ(count, 2);
  lock.Unlock();
  other.join();
}

TEST(MutexLockTest, GivesTheMutexFreeBetweenUnlockAndLock) {
  Mutex mutex;
  int count = 0;
  {
    MutexLock lock(mutex);
    lock.Unlock();
    std::thread([&] {
      const MutexLock in_thread(mutex);
      count = 1;
    }).join();
    lock.Lock();
    EXPECT_EQ(count, 1);
  }
  const MutexLock again(mutex);
  EXPECT_EQ(count, 1);
}

}  // namespace
}  // namespace rollcall
