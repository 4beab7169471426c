// SPDX-License-Identifier: Apache-2.0
// Reads that block, and other reads at the same time.
#include "agent/processes/spare_threads.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>

#include "no_more_threads.h"

namespace rollcall {
namespace {

constexpr int64_t kSoon = 20'000'000;
constexpr int64_t kLong = 30'000'000'000;

// A FIFO without a writer: opening it for reading blocks.
class SpareThreadsTest : public testing::Test {
 protected:
  void SetUp() override {
    char path[] = "/tmp/rollcall-spare-XXXXXX";
    ASSERT_NE(mkdtemp(path), nullptr);
    folder_ = path;
    fifo_ = folder_ / "environ";
    ASSERT_EQ(mkfifo(fifo_.c_str(), 0600), 0);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  auto BlockingRead() {
    return [path = fifo_.string(), back = back_] {
      const int fd = open(path.c_str(), O_RDONLY);
      if (fd >= 0) close(fd);
      *back = true;
    };
  }
  void LetItBack() {
    const int fd = open(fifo_.c_str(), O_WRONLY);
    if (fd >= 0) close(fd);
    while (!*back_) std::this_thread::yield();
  }

  std::filesystem::path folder_, fifo_;
  std::shared_ptr<std::atomic<bool>> back_ = std::make_shared<std::atomic<bool>>(false);
};

TEST_F(SpareThreadsTest, WaitsForAReadThatReturns) {
  SpareThreads threads;
  int value = 0;
  EXPECT_TRUE(threads.Run("a", [&value] { value = 7; }, kLong));
  EXPECT_EQ(value, 7);
  EXPECT_FALSE(threads.IsRunning("a"));
}

TEST_F(SpareThreadsTest, RefusesAReadWhereTheSystemRefusesAThread) {
  SpareThreads threads;
  {
    const NoMoreThreads refused;
    EXPECT_FALSE(threads.Run("a", [] { FAIL() << "no thread"; }, kLong));
    EXPECT_FALSE(threads.IsRunning("a"));
  }
  EXPECT_TRUE(threads.Run("a", [] {}, kLong));
}

TEST_F(SpareThreadsTest, AStuckReadBlocksNoOther) {
  SpareThreads threads;
  EXPECT_FALSE(threads.Run("stuck", BlockingRead(), kSoon));
  EXPECT_TRUE(threads.IsRunning("stuck"));
  const auto second = [] { FAIL() << "a second thread for the same process"; };
  EXPECT_FALSE(threads.Run("stuck", second, kLong));
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(threads.Run("other", [] {}, kLong));
  LetItBack();
  while (threads.IsRunning("stuck")) std::this_thread::yield();
  EXPECT_TRUE(threads.Run("stuck", [] {}, kLong));
}

TEST_F(SpareThreadsTest, RefusesReadsAtTheLimitOfThreads) {
  SpareThreads threads;
  auto release = std::make_shared<std::atomic<bool>>(false);
  int refused = 0;
  for (int i = 0; i < 80; ++i) {
    const auto wait = [release] {
      while (!*release) usleep(1000);
    };
    threads.Run(std::to_string(i), wait, 1);
    refused += !threads.IsRunning(std::to_string(i));
  }
  *release = true;
  EXPECT_EQ(refused, 16);
}

TEST_F(SpareThreadsTest, TheStuckReadsOfOneUserLeaveThreadsForOthers) {
  SpareThreads threads;
  auto release = std::make_shared<std::atomic<bool>>(false);
  const auto wait = [release] {
    while (!*release) usleep(1000);
  };
  for (int i = 0; i < 80; ++i) threads.Run(std::to_string(i), wait, 1, 7);
  EXPECT_TRUE(threads.IsRunning("15"));
  EXPECT_FALSE(threads.IsRunning("16"));
  EXPECT_TRUE(threads.Run("another user", [] {}, kLong, 8));
  EXPECT_TRUE(threads.Run("nobody", [] {}, kLong));
  *release = true;
  while (threads.IsRunning("0")) std::this_thread::yield();
  EXPECT_TRUE(threads.Run("again", [] {}, kLong, 7));
}

TEST_F(SpareThreadsTest, ItsDestructorDoesNotWaitForAStuckRead) {
  {
    SpareThreads threads;
    EXPECT_FALSE(threads.Run("stuck", BlockingRead(), kSoon));
  }
  EXPECT_FALSE(*back_);
  LetItBack();
}

TEST_F(SpareThreadsTest, CancelEndsTheWaitForARead) {
  SpareThreads threads;
  std::thread canceller([&threads] {
    while (!threads.IsRunning("stuck")) std::this_thread::yield();
    threads.Cancel();
  });
  EXPECT_FALSE(threads.Run("stuck", BlockingRead(), kLong));
  canceller.join();
  EXPECT_FALSE(threads.Run("other", [] {}, kLong));
  LetItBack();
}

}  // namespace
}  // namespace rollcall
