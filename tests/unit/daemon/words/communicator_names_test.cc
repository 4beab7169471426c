// SPDX-License-Identifier: Apache-2.0
#include "daemon/words/communicator_names.h"

#include <gtest/gtest.h>

#include "job_builder.h"

namespace rollcall {
namespace {

std::string NameOf(JobBuilder job, const std::vector<int>& ranks, const std::string& name = "") {
  job.AddCommunicator(9, name, ranks);
  return NameForPeople(job.state, job.comm());
}

TEST(CommunicatorNamesTest, TheProgramsNameComesFirst) {
  EXPECT_EQ(NameOf(JobBuilder(8), {0, 1}, "tp"), "tp");
  EXPECT_EQ(NameOf(JobBuilder(8), {0, 1}, "mesh_dp"), "dp");
  EXPECT_EQ(NameOf(JobBuilder(8), {0, 1}, "default_pg"), "default_pg");
}

TEST(CommunicatorNamesTest, WithoutANameTheRanks) {
  EXPECT_EQ(NameOf(JobBuilder(4), {0, 1, 2, 3}), "all ranks");
  EXPECT_EQ(NameOf(JobBuilder(4), {0, 1, 2, 3}, "undefined"), "all ranks");
  EXPECT_EQ(NameOf(JobBuilder(4), {0, 1, 2, 3}, "group "), "all ranks");  // torchft
  EXPECT_EQ(NameOf(JobBuilder(4), {0, 1, 2, 3}, "group 1"), "group 1");
  EXPECT_EQ(NameOf(JobBuilder(8), {0, 2, 4, 6}), "4 ranks: 0,2,4,6");
  EXPECT_EQ(NameOf(JobBuilder(8), {4, 5, 6, 7}), "4 ranks: 4-7");
}

TEST(CommunicatorNamesTest, SaysHowManyRanksAreUnknown) {
  JobBuilder job(8);
  job.AddCommunicator(9, "", {0, 2, 4, 6});
  job.comm().members.erase(1);
  job.comm().members.erase(3);
  EXPECT_EQ(NameForPeople(job.state, job.comm()), "4 ranks: 0,4 and 2 unknown");
}

TEST(CommunicatorNamesTest, RanksWithoutNumbersInTheJobMakeNoName) {
  JobBuilder job(4);
  for (Process& process : job.state.processes) process.global_rank = process.world_size = -1;
  EXPECT_EQ(NameOf(job, {0, 1}), "");
  job.AddCommunicator(9, "", {0, 1, 2, 3});
  EXPECT_EQ(NameForPeople(job.state, job.comm()), "all ranks");
}

TEST(CommunicatorNamesTest, KnowsTheNamesThatItMade) {
  EXPECT_TRUE(IsMadeOfRanks("all ranks"));
  EXPECT_TRUE(IsMadeOfRanks("4 ranks: 0,2,4,6"));
  EXPECT_TRUE(IsMadeOfRanks("8 ranks: 0,2-4 and 3 unknown"));
  EXPECT_FALSE(IsMadeOfRanks("dp"));
  EXPECT_FALSE(IsMadeOfRanks("acme-secret ranks: 7"));
  EXPECT_FALSE(IsMadeOfRanks("4 ranks: secret"));
}

}  // namespace
}  // namespace rollcall
