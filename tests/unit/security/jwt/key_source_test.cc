// SPDX-License-Identifier: Apache-2.0
#include "security/jwt/key_source.h"

#include <gtest/gtest.h>
#include <httplib.h>

#include <atomic>
#include <mutex>
#include <thread>
#include <utility>

#include "eventually.h"
#include "temporary_tree.h"
#include "test_keys.h"

namespace rollcall {
namespace {

TEST(FetchScheduleTest, TheFirstFetchIsDueAtOnceAndTheNextAfterTenMinutes) {
  FetchSchedule schedule;
  EXPECT_TRUE(schedule.IsDue(0, false));
  schedule.RecordFetch(100, /*worked=*/true);
  EXPECT_FALSE(schedule.IsDue(699, false));
  EXPECT_TRUE(schedule.IsDue(700, false));
}

TEST(FetchScheduleTest, UnknownKeysAndFailuresHaveItFetchedOnceInHalfAMinute) {
  FetchSchedule schedule;
  schedule.RecordFetch(100, /*worked=*/true);
  EXPECT_FALSE(schedule.IsDue(129, /*is_wanted=*/true));
  EXPECT_TRUE(schedule.IsDue(130, /*is_wanted=*/true));
  schedule.RecordFetch(130, /*worked=*/false);
  EXPECT_FALSE(schedule.IsDue(159, /*is_wanted=*/true));
  EXPECT_TRUE(schedule.IsDue(160, /*is_wanted=*/false));
}

TEST(KeySourceTest, ReadsAFileAtOnceAndIgnoresABadReplacement) {
  const AllThreadsEnd all_threads_end;
  const TemporaryTree tree;
  const TestKey first = TestKey::Ec("first"), second = TestKey::Ec("second");
  tree.Write("keys", KeySetText({first.Json()}));
  const auto source = KeySource::Watch(ReadKeysFromFile(tree.root() + "/keys"));
  ASSERT_NE(source->keys(), nullptr);
  EXPECT_NE(source->keys()->Find("first"), nullptr);
  for (const char* bad : {"garbage", ""}) {
    tree.Write("keys", bad);
    EXPECT_TRUE(Eventually([&] { return !source->status().ok(); }));
    EXPECT_NE(source->keys()->Find("first"), nullptr);
    tree.Write("keys", KeySetText({first.Json(R"(,"n":"x")")}));
    EXPECT_TRUE(Eventually([&] { return source->status().ok(); }));
  }
  tree.Write("keys", KeySetText({second.Json()}));
  EXPECT_TRUE(Eventually([&] { return source->keys()->Find("second") != nullptr; }));
  EXPECT_EQ(source->keys()->Find("first"), nullptr);
}

TEST(KeySourceTest, AFileThatComesBackUnchangedEndsTheError) {
  const AllThreadsEnd all_threads_end;
  bool is_there = true;
  std::mutex mutex;
  const std::string text = KeySetText({TestKey::Ec("k").Json()});
  std::string news = text;
  const auto source = KeySource::Watch([&]() -> absl::StatusOr<std::string> {
    const std::lock_guard<std::mutex> lock(mutex);
    if (!is_there) return absl::NotFoundError("gone");
    return std::exchange(news, "");
  });
  EXPECT_TRUE(source->status().ok());
  const auto set = [&](bool there) {
    const std::lock_guard<std::mutex> lock(mutex);
    is_there = there;
  };
  set(false);
  EXPECT_TRUE(Eventually([&] { return !source->status().ok(); }));
  set(true);
  EXPECT_TRUE(Eventually([&] { return source->status().ok(); }));
  EXPECT_NE(source->keys(), nullptr);
}

TEST(KeySourceTest, AUrlIsFetchedAndAnEmptyAnswerIsAnError) {
  const AllThreadsEnd all_threads_end;
  const TestKey key = TestKey::Ec("k");
  httplib::Server server;
  server.Get("/keys", [&key](const httplib::Request&, httplib::Response& response) {
    response.set_content(KeySetText({key.Json()}), "application/json");
  });
  server.Get("/empty", [](const httplib::Request&, httplib::Response&) {});
  const std::string origin =
      "http://127.0.0.1:" + std::to_string(server.bind_to_any_port("127.0.0.1"));
  std::thread thread([&server] { server.listen_after_bind(); });
  const auto source = KeySource::Fetch(ReadKeysFromUrl({origin + "/keys", "", ""}));
  EXPECT_TRUE(Eventually([&] { return source->keys() != nullptr; }));
  EXPECT_NE(source->keys()->Find("k"), nullptr);
  EXPECT_FALSE(ReadKeysFromUrl({origin + "/empty", "", ""})().ok());
  server.stop();
  thread.join();
}

TEST(KeySourceTest, AFailingFetchKeepsNothingWaiting) {
  const AllThreadsEnd all_threads_end;
  const auto tries = std::make_shared<std::atomic<int>>(0);
  const auto source = KeySource::Fetch([tries]() -> absl::StatusOr<std::string> {
    ++*tries;
    return absl::UnavailableError("no network");
  });
  EXPECT_TRUE(Eventually([&] { return *tries == 1; }));
  EXPECT_TRUE(Eventually([&] { return source->status().message() == "no network"; }));
  EXPECT_EQ(source->keys(), nullptr);
  source->WantNewKeys();
  EXPECT_EQ(*tries, 1) << "once in half a minute";
}

}  // namespace
}  // namespace rollcall
