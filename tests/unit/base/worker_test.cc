// SPDX-License-Identifier: Apache-2.0
#include "base/worker.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <system_error>
#include <thread>
#include <vector>

#include "absl/synchronization/notification.h"
#include "base/threads.h"
#include "eventually.h"
#include "no_more_threads.h"

namespace rollcall {
namespace {

constexpr std::chrono::minutes kSoon{1};
constexpr std::chrono::milliseconds kMoment{20};
constexpr std::chrono::hours kHour{1};

SteadyTime In(std::chrono::nanoseconds time) { return std::chrono::steady_clock::now() + time; }

// A task that blocks, as one does that reads from a dead file server, until Release().
class Blocked {
 public:
  Worker::Task Task() const {
    return [shared = shared_] {
      shared->has_begun.Notify();
      shared->release.WaitForNotification();
    };
  }
  void AwaitBegin() const { shared_->has_begun.WaitForNotification(); }
  void Release() const { shared_->release.Notify(); }

 private:
  struct Shared {
    absl::Notification has_begun, release;
  };
  const std::shared_ptr<Shared> shared_ = std::make_shared<Shared>();
};

bool NoThreadIsLeft() {
  return Eventually([] { return live_loose_threads == 0; });
}

TEST(WorkerTest, RunsTasksInTheirOrder) {
  std::vector<int> ran;
  Worker worker;
  for (int i = 0; i < 100; ++i) {
    EXPECT_TRUE(worker.Post([&ran, i] { ran.push_back(i); }));
  }
  EXPECT_TRUE(worker.Finish(In(kSoon)));
  std::vector<int> all(100);
  for (int i = 0; i < 100; ++i) all[static_cast<size_t>(i)] = i;
  EXPECT_EQ(ran, all);
}

TEST(WorkerTest, RefusesATaskWhereTheSystemRefusesItsThread) {
  Worker worker;
  int ran = 0;
  {
    const NoMoreThreads refused;
    EXPECT_FALSE(worker.Post([&ran] { ran = 1; }));
    EXPECT_THROW(worker.Start(), std::system_error);
    EXPECT_THROW(worker.Repeat([] { return kMoment; }), std::system_error);
  }
  EXPECT_TRUE(worker.Post([&ran] { ran += 2; }));
  EXPECT_TRUE(worker.Finish(In(kSoon)));
  EXPECT_EQ(ran, 2);
}

TEST(WorkerTest, HasNoThreadBeforeItsFirstTask) {
  ASSERT_TRUE(NoThreadIsLeft());
  Worker worker;
  EXPECT_EQ(live_loose_threads, 0);
  EXPECT_TRUE(worker.AwaitIdle(SteadyTime()));
  EXPECT_TRUE(worker.Finish(SteadyTime()));
}

TEST(WorkerTest, HasAllThreadsFromItsStartOn) {
  ASSERT_TRUE(NoThreadIsLeft());
  Worker worker(Worker::kNoLimit, 3);
  worker.Start();
  EXPECT_EQ(live_loose_threads, 3);
  worker.Start();
  EXPECT_EQ(live_loose_threads, 3);
  EXPECT_TRUE(worker.Finish(In(kSoon)));
  worker.Start();
  EXPECT_TRUE(NoThreadIsLeft());
}

TEST(WorkerTest, TheDestructorRunsWhatWaits) {
  int ran = 0;
  {
    Worker worker;
    for (int i = 0; i < 10; ++i) worker.Post([&ran] { ++ran; });
  }
  EXPECT_EQ(ran, 10);
}

TEST(WorkerTest, RefusesATaskThatIsTooMany) {
  const Blocked blocked;
  std::atomic<int> ran{0};
  Worker worker(2);
  worker.Post(blocked.Task());
  blocked.AwaitBegin();
  EXPECT_TRUE(worker.Post([&ran] { ++ran; }));
  EXPECT_TRUE(worker.Post([&ran] { ++ran; }));
  EXPECT_FALSE(worker.Post([&ran] { ++ran; })) << "the one that runs does not wait";
  blocked.Release();
  EXPECT_TRUE(worker.AwaitIdle(In(kSoon)));
  EXPECT_EQ(ran, 2);
  EXPECT_TRUE(worker.Post([&ran] { ++ran; })) << "there is room again";
}

TEST(WorkerTest, RefusesTasksOnceItFinishes) {
  Worker worker;
  worker.Post([] {});
  EXPECT_TRUE(worker.Finish(In(kSoon)));
  EXPECT_FALSE(worker.Post([] {}));
  EXPECT_TRUE(worker.Finish(SteadyTime())) << "again";
}

TEST(WorkerTest, IsIdleOnlyWhenTheLastTaskHasEnded) {
  const Blocked blocked;
  Worker worker;
  worker.Post(blocked.Task());
  blocked.AwaitBegin();
  EXPECT_FALSE(worker.AwaitIdle(In(kMoment)));
  blocked.Release();
  EXPECT_TRUE(worker.AwaitIdle(In(kSoon)));
}

TEST(WorkerTest, DropsTasksThatHaveNotBegun) {
  const Blocked blocked;
  bool ran = false;
  const auto owned = std::make_shared<int>(0);
  Worker worker;
  worker.Post(blocked.Task());
  blocked.AwaitBegin();
  worker.Post([&ran, owned] { ran = true; });
  worker.DropWaiting();
  EXPECT_EQ(owned.use_count(), 1) << "and what they own";
  blocked.Release();
  EXPECT_TRUE(worker.Finish(In(kSoon)));
  EXPECT_FALSE(ran);
}

TEST(WorkerTest, LeavesAThreadBehindThatDoesNotEndInTime) {
  const Blocked blocked;
  const auto ran = std::make_shared<std::atomic<bool>>(false);
  {
    Worker worker;
    worker.Post(blocked.Task());
    worker.Post([ran] { *ran = true; });
    blocked.AwaitBegin();
    EXPECT_FALSE(worker.Finish(In(kMoment)));
    EXPECT_TRUE(worker.Finish(In(kHour))) << "nobody waits for it again";
    EXPECT_TRUE(worker.AwaitIdle(In(kHour)));
  }
  EXPECT_EQ(live_loose_threads, 1) << "LeaveProcess() does not wait for it";
  EXPECT_FALSE(*ran);
  blocked.Release();
  EXPECT_TRUE(NoThreadIsLeft());
  EXPECT_TRUE(*ran) << "it goes on when the file server is back";
}

TEST(WorkerTest, FinishesWithoutTheTasksThatWait) {
  const Blocked blocked;
  bool ran = false;
  Worker worker;
  worker.Post(blocked.Task());
  blocked.AwaitBegin();
  worker.Post([&ran] { ran = true; });
  EXPECT_FALSE(worker.Finish(In(kMoment), Worker::Waiting::kDrop));
  blocked.Release();
  EXPECT_TRUE(NoThreadIsLeft());
  EXPECT_FALSE(ran);
}

TEST(WorkerTest, SeveralThreadsShareTheTasks) {
  const Blocked blocked;
  std::atomic<int> ran{0};
  Worker worker(Worker::kNoLimit, 2);
  worker.Post(blocked.Task());
  for (int i = 0; i < 10; ++i) worker.Post([&ran] { ++ran; });
  EXPECT_TRUE(Eventually([&ran] { return ran == 10; })) << "the other thread runs them";
  EXPECT_FALSE(worker.AwaitIdle(SteadyTime()));
  blocked.Release();
  EXPECT_TRUE(worker.Finish(In(kSoon)));
}

TEST(WorkerTest, RepeatsAStep) {
  absl::Notification third;
  int steps = 0;
  Worker worker;
  worker.Repeat([&] {
    if (++steps == 3) third.Notify();
    return steps < 3 ? std::chrono::nanoseconds(1) : std::chrono::nanoseconds(kHour);
  });
  third.WaitForNotification();
  EXPECT_TRUE(worker.Finish(In(kSoon)));
  EXPECT_EQ(steps, 3);
}

TEST(WorkerTest, AWakenedWorkerRunsItsStepEarlier) {
  absl::Notification first, second;
  int steps = 0;
  Worker worker;
  worker.Repeat([&] {
    (++steps == 1 ? first : second).Notify();
    return kHour;
  });
  first.WaitForNotification();
  worker.Wake();
  second.WaitForNotification();
}

TEST(WorkerTest, AWorkerThatIsWokenDuringItsStepRunsItOnceMore) {
  absl::Notification first, woken, second;
  int steps = 0;
  Worker worker;
  worker.Repeat([&] {
    if (++steps == 1) {
      first.Notify();
      woken.WaitForNotification();
    } else {
      second.Notify();
    }
    return kHour;
  });
  first.WaitForNotification();
  worker.Wake();
  woken.Notify();
  second.WaitForNotification();
}

TEST(WorkerTest, ManyThreadsPost) {
  std::atomic<int> ran{0};
  {
    Worker worker;
    std::vector<std::thread> posting;
    for (int i = 0; i < 4; ++i) {
      posting.emplace_back([&] {
        for (int j = 0; j < 1000; ++j) worker.Post([&ran] { ++ran; });
      });
    }
    for (std::thread& thread : posting) thread.join();
  }
  EXPECT_EQ(ran, 4000);
}

}  // namespace
}  // namespace rollcall
