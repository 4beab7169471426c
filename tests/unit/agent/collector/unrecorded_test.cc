// SPDX-License-Identifier: Apache-2.0
#include "agent/collector/unrecorded.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <map>

#include "absl/strings/str_cat.h"

namespace rollcall {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

UnrecordedRank Rank(int rank, int64_t payer = 1000) {
  UnrecordedRank made;
  made.process.process = {100 + rank, 5};
  made.process.rank.coordinates.rank = rank;
  made.process.rank.coordinates.world_size = 4;
  made.process.rank.variable = "RANK";
  made.payer = payer;
  made.script = "train.py";
  made.marks = {{"rendezvous", "node-1:29500", false}};
  return made;
}

v1::UnrecordedProcesses List(const std::vector<UnrecordedRank>& ranks) {
  return ListOf(ranks, 0, *DefaultRedactor());
}

TEST(UnrecordedTest, AUserWithVeryManyRanksLeavesTheOthersTheirShare) {
  std::vector<UnrecordedRank> ranks;
  for (int i = 0; i < 10'000; ++i) ranks.push_back(Rank(i, 1000));
  ranks.push_back(Rank(0, 1001));
  const v1::UnrecordedProcesses list = List(ranks);
  EXPECT_THAT(list.processes(), SizeIs(kMostUnrecordedOfUser + 1));
  EXPECT_EQ(list.left_out(), 10'000 - kMostUnrecordedOfUser);
}

TEST(UnrecordedTest, ManyUsersShareTheListEvenly) {
  std::vector<UnrecordedRank> ranks;
  for (int i = 0; i < 64 * 100; ++i) ranks.push_back(Rank(i, 1000 + i % 64));
  EXPECT_THAT(List(ranks).processes(), SizeIs(kMostUnrecorded));
}

TEST(UnrecordedTest, NamesHaveNoControlCharactersAndNoSecrets) {
  UnrecordedRank rank = Rank(0);
  rank.process.job = "evil\x1b[2Jjob\nline";
  rank.script = absl::StrCat("train-", "ghp_", std::string(36, 'a'), ".py");
  const v1::UnrecordedProcess sent = List({rank}).processes(0);
  EXPECT_THAT(sent.identity().job(), Not(HasSubstr("\x1b")));
  EXPECT_THAT(sent.identity().job(), Not(HasSubstr("\n")));
  EXPECT_THAT(sent.script(), Not(HasSubstr("aaaaaaaaaa")));
}

TEST(UnrecordedTest, WhatRanksHaveInCommonLeavesTheHostAsADigest) {
  UnrecordedRank other = Rank(1), stranger = Rank(2);
  stranger.marks = {{"rendezvous", "node-9:29500", false}};
  const v1::UnrecordedProcesses list = List({Rank(0), other, stranger});
  EXPECT_EQ(list.processes(0).marks(0).value(), list.processes(1).marks(0).value());
  EXPECT_NE(list.processes(0).marks(0).value(), list.processes(2).marks(0).value());
  EXPECT_THAT(list.SerializeAsString(), Not(HasSubstr("29500")));
}

TEST(UnrecordedTest, NoVariableAndNoFileNameOfOutputLeavesTheHost) {
  UnrecordedRank rank = Rank(0);
  rank.process.launch.environment = "NCCL_DEBUG=INFO";
  rank.process.launch.stdout_to = "/home/u/out.log";
  rank.process.launch.launch = "1000 node-1:29500";
  const std::string sent = List({rank}).SerializeAsString();
  for (const char* text : {"NCCL_DEBUG", "out.log", "29500"}) {
    EXPECT_THAT(sent, Not(HasSubstr(text)));
  }
}

// Else an agent would send its list again, with the same ranks.
TEST(UnrecordedTest, TheStartOfARankIsWorkedOutOnce) {
  UnrecordedRank rank = Rank(0);
  rank.started_ns = 123;
  EXPECT_EQ(List({rank}).processes(0).identity().started_ns(), 123);
}

TEST(UnrecordedTest, OfARankOnlyIsKeptWhatIsSent) {
  ProcStat stat;
  stat.pid = getpid();
  stat.start_time = 100;
  std::string environ;
  for (const char* variable : {"RANK=0", "WORLD_SIZE=4", "ROLLCALL_DIR=/tmp/x"}) {
    environ += variable;
    environ += '\0';
  }
  const auto rank = DescribeUnrecorded(environ, stat, "/proc");
  ASSERT_TRUE(rank.has_value());
  EXPECT_THAT(rank->process.directory, IsEmpty());
  EXPECT_THAT(rank->process.launch.environment, IsEmpty());
  EXPECT_GT(rank->started_ns, 0);
}

}  // namespace
}  // namespace rollcall
