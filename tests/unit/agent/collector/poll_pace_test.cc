// SPDX-License-Identifier: Apache-2.0
#include "agent/collector/poll_pace.h"

#include <gtest/gtest.h>

#include <string>

#include "interpose/ops.h"

namespace rollcall {
namespace {

constexpr int64_t kSecond = 1'000'000'000;
constexpr int64_t kStart = 1000 * kSecond;

// What a thread does in each second of a loop.
struct Case {
  const char* name;
  uint64_t polls;
  int64_t in_polls_ns, cpu_ns;
  bool sleeps, waits;
};

const Case kCases[] = {
    {"tests_without_a_pause", 2'000'000, kSecond / 2, kSecond, false, true},
    {"tests_without_a_pause_or_much_of_a_cpu", 20'000, kSecond / 200, kSecond / 100, false, true},
    {"sleeps_between_tests", 10, 10'000, 1'000'000, true, true},
    {"works_between_tests", 200, 100'000, kSecond, false, false},
    {"works_between_tests_without_much_of_a_cpu", 20, 10'000, kSecond / 20, false, false},
    {"works_between_tests_that_give_the_cpu_away", 60, kSecond / 2, kSecond / 3, false, false},
    {"tests_without_a_pause_that_give_the_cpu_away", 2000, kSecond * 9 / 10, 4'000'000, false,
     true},
    {"tests_no_more", 0, 0, kSecond, false, false},
    {"sleeps_after_its_last_test", 0, 0, 0, true, false},
};

class PollPaceTest : public testing::TestWithParam<Case> {};

TEST_P(PollPaceTest, OnlyALoopThatDoesNothingElseWaits) {
  const Case& c = GetParam();
  PollPaces paces;
  bool waits = false;
  for (int i = 0; i < 5; ++i) {
    const int64_t passed = i * 2 * kSecond;  // a look each 2 s
    SegmentSnapshot snapshot;
    BlockedSnapshot loop;
    loop.tid = 7;
    loop.op = static_cast<uint32_t>(Op::kMPI_Test);
    loop.since_ns = kStart;
    loop.polls = 1 + 2 * static_cast<uint64_t>(i) * c.polls;
    loop.poll_ns = 2 * i * c.in_polls_ns;
    snapshot.blocked = {loop};
    paces.KeepWaits(kStart + passed, {2 * i * c.cpu_ns, c.sleeps}, &snapshot);
    waits = !snapshot.blocked.empty();
    if (i == 0) {
      EXPECT_TRUE(waits) << "one look shows no loop, and nobody blames the rank so soon";
    }
  }
  EXPECT_EQ(waits, c.waits);
}

INSTANTIATE_TEST_SUITE_P(Loops, PollPaceTest, testing::ValuesIn(kCases),
                         [](const auto& row) { return std::string(row.param.name); });

TEST(PollPacesTest, OtherCallsStay) {
  SegmentSnapshot snapshot;
  BlockedSnapshot receive;
  receive.tid = 7;
  receive.op = static_cast<uint32_t>(Op::kMPI_Recv);
  receive.since_ns = kStart;
  snapshot.blocked = {receive};
  PollPaces paces;
  paces.KeepWaits(kStart + kSecond, {}, &snapshot);
  EXPECT_EQ(snapshot.blocked.size(), 1u);
}

}  // namespace
}  // namespace rollcall
