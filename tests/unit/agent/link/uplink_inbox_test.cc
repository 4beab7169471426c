// SPDX-License-Identifier: Apache-2.0
#include "agent/link/uplink_inbox.h"

#include <gtest/gtest.h>

#include <thread>

namespace rollcall {
namespace {

constexpr auto kNow = std::chrono::steady_clock::time_point();
constexpr auto kNever = std::chrono::steady_clock::time_point::max();

bool IsNever() { return false; }

v1::AgentMessage Answer(uint64_t request) {
  v1::AgentMessage answer;
  answer.mutable_stacks()->set_request(request);
  return answer;
}

TEST(UplinkInboxTest, HoldsOneAnswerUntilTheUplinkTakesIt) {
  UplinkInbox inbox;
  ASSERT_TRUE(inbox.Put(inbox.stream(), Answer(1)));
  bool put_second = false;
  std::thread second([&] { put_second = inbox.Put(inbox.stream(), Answer(2)); });
  EXPECT_EQ(inbox.Take(kNever, IsNever)->stacks().request(), 1u);
  EXPECT_EQ(inbox.Take(kNever, IsNever)->stacks().request(), 2u);
  second.join();
  EXPECT_TRUE(put_second);
  EXPECT_FALSE(inbox.Take(kNow, IsNever).has_value());
}

TEST(UplinkInboxTest, RefusesTheAnswerToAStreamThatHasEnded) {
  UplinkInbox inbox;
  const uint64_t ended = inbox.stream();
  ASSERT_TRUE(inbox.Put(ended, Answer(1)));
  bool is_put = true;
  std::thread waits([&] { is_put = inbox.Put(ended, Answer(2)); });
  inbox.EndStream();
  waits.join();
  EXPECT_FALSE(is_put);
  inbox.DropAnswer();
  EXPECT_FALSE(inbox.Take(kNow, IsNever).has_value()) << "the next stream is another daemon's";
}

TEST(UplinkInboxTest, EndsTheWaitForAnswersWhenATickIsWantedAndOnlyThatOne) {
  UplinkInbox inbox;
  inbox.TickSoon();
  EXPECT_FALSE(inbox.Take(kNever, IsNever).has_value());
  EXPECT_FALSE(inbox.Take(kNever, [] { return true; }).has_value());
}

TEST(UplinkInboxTest, NoThreadWaitsOnceTheAgentStops) {
  UplinkInbox inbox;
  ASSERT_TRUE(inbox.Put(inbox.stream(), Answer(1)));
  inbox.Stop();
  EXPECT_FALSE(inbox.Put(inbox.stream(), Answer(2)));
  inbox.WaitFor(IsNever);
  inbox.SleepUnlessStopping(INT64_MAX / 4);
  EXPECT_TRUE(inbox.stopping());
}

}  // namespace
}  // namespace rollcall
