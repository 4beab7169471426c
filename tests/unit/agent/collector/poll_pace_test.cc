// SPDX-License-Identifier: Apache-2.0
#include "agent/collector/poll_pace.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "interpose/ops.h"

namespace rollcall {
namespace {

constexpr int64_t kSecond = 1'000'000'000;
constexpr int64_t kStart = 1000 * kSecond;

// What a thread does in each second of a loop, and its process. -1 if nothing is known of the
// thread.
struct Case {
  const char* name;
  uint64_t polls;
  int64_t in_polls_ns, cpu_ns;
  char state;
  bool waits;
  int64_t thread_cpu_ns = -1, lacked_ns = -1;
  CommKind kind = CommKind::kNccl;
};

const Case kCases[] = {
    {"tests_without_a_pause", 2'000'000, kSecond / 2, kSecond, 'R', true},
    {"tests_without_a_pause_or_much_of_a_cpu", 20'000, kSecond / 200, kSecond / 100, 'R', true},
    {"sleeps_between_tests", 10, 10'000, 1'000'000, 'S', true},
    {"works_between_tests", 200, 100'000, kSecond, 'R', false},
    {"works_between_tests_without_much_of_a_cpu", 20, 10'000, kSecond / 20, 'R', false},
    {"works_between_tests_that_give_the_cpu_away", 60, kSecond / 2, kSecond / 3, 'R', false},
    {"tests_without_a_pause_that_give_the_cpu_away", 2000, kSecond * 9 / 10, 4'000'000, 'R', true},
    {"tests_no_more", 0, 0, kSecond, 'R', false},
    {"sleeps_after_its_last_test", 0, 0, 0, 'S', false},
    // Where the kernel reports how long the thread was ready to run.
    {"sleeps_between_tests_and_then_waits_for_a_cpu", 10, 10'000, 5'000'000, 'R', true, 5'000'000,
     kSecond * 6 / 10},
    {"works_between_tests_and_lacks_a_cpu", 20, 10'000, kSecond / 20, 'S', false, kSecond / 20,
     kSecond * 9 / 10},
    {"sleeps_between_tests_while_other_threads_work", 10, 10'000, 4 * kSecond, 'S', false,
     1'000'000, 0},
    {"works_between_tests_and_its_process_was_not_looked_at_since", 20, 10'000, 0, 'R', false,
     kSecond / 2, kSecond / 2},
    // A sleep of 1 us takes some 60 us, of which the CPU is used for less than 20.
    {"sleeps_as_shortly_as_it_can_between_tests", 14'000, 5'000'000, kSecond / 5, 'S', true,
     kSecond / 5, 0},
    {"works_and_sleeps_between_tests", 1000, 1'000'000, kSecond / 5, 'S', false, kSecond / 5, 0},
    // oneCCL's threads use all of a CPU while they wait for other ranks.
    {"sleeps_between_tests_while_threads_of_the_library_spin", 1000, 300'000, kSecond, 'S', true,
     30'000'000, 0, CommKind::kOneCclEvents},
    {"tests_without_a_pause_while_threads_of_the_library_spin", 2'000'000, kSecond / 3, 2 * kSecond,
     'R', true, kSecond, 0, CommKind::kOneCclEvents},
    // Of such a loop the most passes in the library.
    {"tests_without_a_pause_what_takes_hardly_any_time", 5'000'000, kSecond / 10, kSecond, 'R',
     true},
    {"works_between_tests_while_threads_of_the_library_spin", 200, 100'000, 2 * kSecond, 'R', false,
     kSecond, 0, CommKind::kOneCclEvents},
    {"sleeps_between_tests_of_ucc_while_other_threads_work", 10, 10'000, 4 * kSecond, 'S', false,
     1'000'000, 0, CommKind::kUcc},
    // What it reads is useful, and takes no CPU time.
    {"reads_files_between_tests", 20, 10'000, kSecond / 50, 'D', false, kSecond / 50, 0},
    {"reads_files_between_tests_as_far_as_is_known", 20, 10'000, kSecond / 50, 'D', false},
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
    loop.comm = 0;
    loop.since_ns = kStart;
    loop.polls = 1 + 2 * static_cast<uint64_t>(i) * c.polls;
    loop.poll_ns = 2 * i * c.in_polls_ns;
    snapshot.blocked = {loop};
    snapshot.communicators.resize(1);
    snapshot.communicators[0].kind = c.kind;
    CpuUse use = {2 * i * c.cpu_ns, c.state};
    if (c.lacked_ns >= 0) use.thread_used_ns = 2 * i * c.thread_cpu_ns;
    if (c.lacked_ns >= 0) use.thread_lacked_ns = 2 * i * c.lacked_ns;
    paces.KeepWaits(kStart + passed, {{7, use}}, &snapshot);
    waits = !snapshot.blocked.empty();
    if (i == 0) {
      EXPECT_TRUE(waits) << "one look shows no loop, and nobody blames the rank so soon";
    }
  }
  EXPECT_EQ(waits, c.waits);
}

INSTANTIATE_TEST_SUITE_P(Loops, PollPaceTest, testing::ValuesIn(kCases),
                         [](const auto& row) { return std::string(row.param.name); });

SegmentSnapshot Loop(int64_t since_ns) {
  SegmentSnapshot snapshot;
  BlockedSnapshot loop;
  loop.tid = 7;
  loop.op = static_cast<uint32_t>(Op::kMPI_Iprobe);
  loop.since_ns = since_ns;
  loop.polls = 1;
  snapshot.blocked = {loop};
  return snapshot;
}

// A look costs reads of /proc.
TEST(PollPacesTest, LooksNowAndThen) {
  PollPaces paces;
  SegmentSnapshot loop = Loop(kStart);
  EXPECT_EQ(paces.Due(kStart, loop), std::vector<uint32_t>{7});
  paces.KeepWaits(kStart, {{7, {}}}, &loop);
  EXPECT_TRUE(paces.Due(kStart + kSecond, loop).empty());
  EXPECT_EQ(paces.Due(kStart + 3 * kSecond, loop), std::vector<uint32_t>{7});
  EXPECT_EQ(paces.Due(kStart + kSecond, Loop(kStart + kSecond)), std::vector<uint32_t>{7})
      << "another loop";
}

// An agent that lacks a CPU looks late, and a loop that works may be old by then.
TEST(PollPacesTest, OneLookAtAnOldLoopShowsNoWait) {
  PollPaces paces;
  SegmentSnapshot loop = Loop(kStart);
  paces.KeepWaits(kStart + 2 * kSecond, {{7, {}}}, &loop);
  EXPECT_EQ(loop.blocked.size(), 1u);
  paces.KeepWaits(kStart + 4 * kSecond, {}, &loop);
  EXPECT_TRUE(loop.blocked.empty());

  SegmentSnapshot old = Loop(kStart);
  PollPaces().KeepWaits(kStart + 4 * kSecond, {{7, {}}}, &old);
  EXPECT_TRUE(old.blocked.empty());
}

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
