// SPDX-License-Identifier: Apache-2.0
#include "cli/remote/slurm_nodes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

namespace rollcall {
namespace {

using testing::HasSubstr;

TEST(SlurmNodesTest, TheNodesOfAJobThatRuns) {
  const auto job = ParseSlurmJob(
      "JobId=7 JobName=train UserId=eve(1000) JobState=RUNNING Reason=None "
      "NodeList=node[01-04,7] BatchHost=node01 NumNodes=5\n");
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(job->nodes, "node[01-04,7]");
  EXPECT_EQ(job->id, "7");
}

constexpr char kTaskOne[] = "JobId=8 ArrayJobId=9 ArrayTaskId=1 JobState=RUNNING NodeList=n1\n";
constexpr char kTaskFour[] = "JobId=12 ArrayJobId=9 ArrayTaskId=4 JobState=RUNNING NodeList=n4\n";
constexpr char kPending[] = "JobId=9 ArrayJobId=9 ArrayTaskId=5-7 JobState=PENDING NodeList=\n";

TEST(SlurmNodesTest, ATaskOfAnArrayHasANumberOfItsOwn) {
  EXPECT_EQ(ParseSlurmJob(kTaskFour)->id, "12");
  EXPECT_EQ(ParseSlurmJob(absl::StrCat(kPending, kTaskOne))->nodes, "n1");
}

TEST(SlurmNodesTest, OfAnArrayThatRunsOneTaskMustBeNamed) {
  EXPECT_EQ(ParseSlurmJob(absl::StrCat(kPending, kTaskFour, kTaskOne)).status().message(),
            "it is an array of which 2 tasks run, each a job of its own: name one, --slurm=9_4 or "
            "--slurm=9_1");
}

TEST(SlurmNodesTest, OfAHeterogeneousJobTheFirstComponent) {
  EXPECT_EQ(ParseSlurmJob("JobId=20 HetJobId=20 JobState=RUNNING NodeList=n1\n"
                          "JobId=21 HetJobId=20 JobState=RUNNING NodeList=n2\n")
                ->id,
            "20");
}

TEST(SlurmNodesTest, AJobThatDoesNotRunHasNone) {
  EXPECT_THAT(
      std::string(ParseSlurmJob("JobId=7 JobState=PENDING NodeList= \n").status().message()),
      HasSubstr("the job does not run: it is PENDING"));
  EXPECT_FALSE(ParseSlurmJob("JobId=7 JobState=RUNNING NodeList=(null)").ok());
  EXPECT_FALSE(ParseSlurmJob("JobId=7 JobState=RUNNING NodeList=--all").ok());
  EXPECT_THAT(std::string(ParseSlurmJob("slurm_load_jobs error").status().message()),
              HasSubstr("prints no state"));
  EXPECT_FALSE(ParseSlurmJob("").ok());
}

}  // namespace
}  // namespace rollcall
