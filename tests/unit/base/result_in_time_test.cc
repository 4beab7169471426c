// SPDX-License-Identifier: Apache-2.0
#include "base/result_in_time.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "absl/synchronization/notification.h"
#include "eventually.h"
#include "no_more_threads.h"

namespace rollcall {
namespace {

SteadyTime Soon() { return std::chrono::steady_clock::now() + std::chrono::minutes(1); }

TEST(ResultInTimeTest, HasTheResultOfWorkThatEnds) {
  ResultInTime<std::string> work([] { return std::string("found"); });
  EXPECT_EQ(work.Take(Soon()), "found");
}

TEST(ResultInTimeTest, HasNoResultOfWorkThatHangs) {
  const AllThreadsEnd end;
  const auto release = std::make_shared<absl::Notification>();
  ResultInTime<int> work([release] {
    release->WaitForNotification();
    return 1;
  });
  EXPECT_EQ(work.Take(SteadyTime()), std::nullopt);
  release->Notify();
}

TEST(ResultInTimeTest, HasNoResultWhereTheSystemRefusesAThread) {
  const NoMoreThreads refused;
  ResultInTime<int> work([] { return 1; });
  EXPECT_EQ(work.Take(Soon()), std::nullopt);
}

TEST(ResultInTimeTest, TheResultMayStayUntaken) {
  const AllThreadsEnd end;
  const auto release = std::make_shared<absl::Notification>();
  {
    const ResultInTime<int> work([release] {
      release->WaitForNotification();
      return 1;
    });
  }
  release->Notify();
}

}  // namespace
}  // namespace rollcall
