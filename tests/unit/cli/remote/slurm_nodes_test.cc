// SPDX-License-Identifier: Apache-2.0
#include "cli/remote/slurm_nodes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace rollcall {
namespace {

using testing::HasSubstr;

TEST(SlurmNodesTest, TheNodesOfAJobThatRuns) {
  EXPECT_EQ(ParseSlurmJob("JobId=7 JobName=train UserId=eve(1000) JobState=RUNNING Reason=None "
                          "NodeList=node[01-04,7] BatchHost=node01 NumNodes=5\n")
                .value(),
            "node[01-04,7]");
}

TEST(SlurmNodesTest, AJobThatDoesNotRunHasNone) {
  EXPECT_THAT(
      std::string(ParseSlurmJob("JobId=7 JobState=PENDING NodeList= \n").status().message()),
      HasSubstr("the job does not run: it is PENDING"));
  EXPECT_FALSE(ParseSlurmJob("JobId=7 JobState=RUNNING NodeList=(null)").ok());
  EXPECT_FALSE(ParseSlurmJob("JobId=7 JobState=RUNNING NodeList=--all").ok());
  EXPECT_THAT(std::string(ParseSlurmJob("slurm_load_jobs error").status().message()),
              HasSubstr("does not say"));
  EXPECT_FALSE(ParseSlurmJob("").ok());
}

}  // namespace
}  // namespace rollcall
