// SPDX-License-Identifier: Apache-2.0
// The threads that run jobs: who runs when, and never twice at once.
#include "base/worker_pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <thread>

#include "base/durations.h"
#include "base/steady_clock.h"

namespace rollcall {
namespace {

using Task = WorkerPool::Task;

class Does : public Task {
 public:
  explicit Does(std::function<int64_t()> what) : what_(std::move(what)) {}
  int64_t Run() override { return what_(); }

 private:
  const std::function<int64_t()> what_;
};

std::shared_ptr<Task> Once(std::promise<void>* done) {
  return std::make_shared<Does>([done] {
    done->set_value();
    return WorkerPool::kNever;
  });
}

TEST(WorkerPoolTest, RunsATaskThatIsWoken) {
  std::promise<void> done;
  WorkerPool pool(1);
  pool.Wake(Once(&done));
  done.get_future().wait();
}

TEST(WorkerPoolTest, RunsATaskAgainWhenItIsDue) {
  std::promise<int64_t> second_run;
  int runs = 0;
  int64_t due_ns = 0;
  WorkerPool pool(2);
  pool.Wake(std::make_shared<Does>([&] {
    if (++runs == 1) return due_ns = SteadyNs() + kSecond / 20;
    second_run.set_value(SteadyNs());
    return WorkerPool::kNever;
  }));
  EXPECT_GE(second_run.get_future().get(), due_ns);
}

TEST(WorkerPoolTest, RunsATaskOnceMoreIfItIsWokenWhileItRuns) {
  std::promise<void> second_run;
  WorkerPool pool(2);
  int runs = 0;
  std::shared_ptr<Task> task;
  task = std::make_shared<Does>([&] {
    if (++runs == 1) {
      pool.Wake(task);
      pool.Wake(task);
    } else if (runs == 2) {
      second_run.set_value();
    }
    return WorkerPool::kNever;
  });
  pool.Wake(task);
  second_run.get_future().wait();
  pool.Stop();
  EXPECT_EQ(runs, 2);
}

TEST(WorkerPoolTest, NeverRunsATaskOnTwoThreadsAtOnce) {
  std::atomic<int> inside{0}, most{0}, runs{0};
  std::promise<void> enough;
  WorkerPool pool(4);
  const auto task = std::make_shared<Does>([&] {
    most = std::max(most.load(), ++inside);
    std::this_thread::yield();
    --inside;
    if (++runs == 1000) enough.set_value();
    return WorkerPool::kNever;
  });
  const auto reached = enough.get_future();
  while (reached.wait_for(std::chrono::seconds(0)) != std::future_status::ready) pool.Wake(task);
  pool.Stop();
  EXPECT_EQ(most, 1);
}

TEST(WorkerPoolTest, ServesOthersWhileOneTaskBlocks) {
  std::promise<void> release, done;
  const std::shared_future<void> released = release.get_future().share();
  WorkerPool pool(2);
  pool.Wake(std::make_shared<Does>([released] {
    released.wait();
    return WorkerPool::kNever;
  }));
  pool.Wake(Once(&done));
  done.get_future().wait();
  release.set_value();
}

// A task that always has more to do lets the others have their turn.
TEST(WorkerPoolTest, ServesOthersBetweenTheRunsOfABusyTask) {
  std::promise<void> done;
  WorkerPool pool(1);
  pool.Wake(std::make_shared<Does>([] { return WorkerPool::kAtOnce; }));
  pool.Wake(Once(&done));
  done.get_future().wait();
}

TEST(WorkerPoolTest, DoesNotRunARemovedTask) {
  std::promise<void> done;
  std::atomic<bool> has_run{false};
  WorkerPool pool(1);
  const auto removed = std::make_shared<Does>([&] {
    has_run = true;
    return WorkerPool::kNever;
  });
  std::promise<void> release;
  const std::shared_future<void> released = release.get_future().share();
  pool.Wake(std::make_shared<Does>([released] {
    released.wait();
    return WorkerPool::kNever;
  }));
  pool.Wake(removed);
  pool.Remove(removed);
  release.set_value();
  pool.Wake(Once(&done));
  done.get_future().wait();
  EXPECT_FALSE(has_run);
}

TEST(WorkerPoolTest, RunsNothingAfterItStops) {
  std::atomic<int> runs{0};
  WorkerPool pool(2);
  const auto task = std::make_shared<Does>([&] {
    ++runs;
    return WorkerPool::kAtOnce;
  });
  pool.Wake(task);
  pool.Stop();
  const int at_stop = runs;
  pool.Wake(task);
  EXPECT_EQ(runs, at_stop);
}

}  // namespace
}  // namespace rollcall
