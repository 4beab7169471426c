// SPDX-License-Identifier: Apache-2.0
// What a job looked like at a time of the last hour, within a limit of memory.
#include "daemon/queries/past_views.h"

#include <gtest/gtest.h>

#include <string>

namespace rollcall {
namespace {

constexpr int64_t kSecondNs = 1'000'000'000;
constexpr int64_t kHour = 3600 * kSecondNs;
const JobKey kJob("train");

v1::JobView View(const std::string& states, const std::string& state = "running") {
  v1::JobView view;
  view.mutable_status()->set_name("train");
  view.mutable_status()->set_state(state);
  view.add_maps()->set_states(states);
  return view;
}

std::string StatesAt(const PastViews& views, int64_t at_ns, const JobKey& job = kJob) {
  const auto view = views.Find(job, at_ns);
  return view.ok() ? view->maps(0).states() : std::string(view.status().message());
}

TEST(PastViewsTest, FindsTheNewestStateAtTheTimeOrBefore) {
  PastViews views;
  views.Add(kJob, 10 * kSecondNs, View("...."));
  views.Add(kJob, 15 * kSecondNs, View("www1"));
  EXPECT_EQ(StatesAt(views, 10 * kSecondNs), "....");
  EXPECT_EQ(StatesAt(views, 15 * kSecondNs - 1), "....");
  EXPECT_EQ(StatesAt(views, 15 * kSecondNs), "www1");
  EXPECT_EQ(StatesAt(views, 99 * kSecondNs), "www1");
  const auto view = views.Find(kJob, 12 * kSecondNs);
  ASSERT_TRUE(view.ok());
  EXPECT_TRUE(view->is_kept());
  EXPECT_EQ(view->now().seconds(), 10);
  EXPECT_EQ(view->kept_from().seconds(), 10);
}

TEST(PastViewsTest, ErrorsSayWhatThereIs) {
  PastViews views;
  EXPECT_NE(StatesAt(views, 1).find("has kept no earlier state"), std::string::npos);
  views.Add(kJob, 1'700'000'000 * kSecondNs - 1, View("...."));
  EXPECT_NE(StatesAt(views, 1).find("2023-11-14T22:13:20+00:00"), std::string::npos)
      << StatesAt(views, 1);
  EXPECT_TRUE(absl::IsNotFound(views.Find(JobKey("other"), kHour).status()));
}

TEST(PastViewsTest, AnAttemptHasStatesOfItsOwn) {
  PastViews views;
  views.Add(JobKey("train", 0), kSecondNs, View("xxxx"));
  views.Add(JobKey("train", 1), kSecondNs, View("...."));
  EXPECT_EQ(StatesAt(views, kSecondNs, JobKey("train", 0)), "xxxx");
  EXPECT_EQ(StatesAt(views, kSecondNs, JobKey("train", 1)), "....");
}

TEST(PastViewsTest, ForgetsStatesOlderThanAnHourAndJobsWithoutStates) {
  PastViews views;
  views.Add(kJob, kSecondNs, View("old."));
  views.Add(kJob, kHour, View("new."));
  views.DropOld(kHour + 2 * kSecondNs);
  EXPECT_EQ(views.Oldest(kJob), kHour);
  views.DropOld(3 * kHour);
  EXPECT_EQ(views.Oldest(kJob), std::nullopt);
  EXPECT_EQ(views.bytes(), 0u);
}

TEST(PastViewsTest, AnEndedJobIsKeptOnceAndItsReturnAgain) {
  PastViews views;
  for (int i = 1; i < 10; ++i) views.Add(kJob, i * kSecondNs, View("eeee", "ended"));
  EXPECT_EQ(views.states(), 1u);
  views.Add(kJob, 10 * kSecondNs, View("...."));
  EXPECT_EQ(views.states(), 2u);
}

TEST(PastViewsTest, AClockThatWasSetBackOverwritesNothing) {
  PastViews views;
  views.Add(kJob, 10 * kSecondNs, View("...."));
  views.Add(kJob, 5 * kSecondNs, View("wwww"));
  EXPECT_EQ(StatesAt(views, 10 * kSecondNs), "....");
  EXPECT_EQ(views.states(), 1u);
}

// Random letters, which do not get smaller when they are compressed.
std::string Noise(size_t size, uint32_t seed) {
  std::string text(size, ' ');
  for (char& letter : text) {
    seed = seed * 1664525 + 1013904223;
    letter = static_cast<char>(' ' + (seed >> 24) % 90);
  }
  return text;
}

TEST(PastViewsTest, BeyondTheLimitOlderStatesOfTheLargestJobBecomeCoarser) {
  constexpr size_t kMostBytes = 1 << 20;
  PastViews views(kHour, kMostBytes);
  const JobKey small("small");
  for (int i = 1; i <= 720; ++i) {
    views.Add(small, i * 5 * kSecondNs, View("...."));
    views.Add(kJob, i * 5 * kSecondNs, View(Noise(10'000, i)));
    ASSERT_LE(views.bytes(), kMostBytes);
  }
  EXPECT_GT(views.bytes(), kMostBytes / 2);
  EXPECT_EQ(views.Oldest(kJob), 5 * kSecondNs) << "an hour back, as before";
  EXPECT_EQ(StatesAt(views, 3600 * kSecondNs), Noise(10'000, 720));
  for (int i = 1; i <= 720; ++i) {
    ASSERT_EQ(views.Find(small, i * 5 * kSecondNs)->now().seconds(), i * 5) << "each is there";
  }
}

TEST(PastViewsTest, AStateThatIsLargerThanTheLimitIsNotKept) {
  PastViews views(kHour, 5'000);
  views.Add(kJob, kSecondNs, View(Noise(10'000, 1)));
  EXPECT_EQ(views.states(), 0u);
  EXPECT_EQ(views.bytes(), 0u);
}

}  // namespace
}  // namespace rollcall
