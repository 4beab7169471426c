// SPDX-License-Identifier: Apache-2.0
#include "cli/status_lines.h"

#include <gtest/gtest.h>

namespace rollcall {
namespace {

v1::StatusResponse OneOfJobs(int total) {
  v1::StatusResponse status;
  status.add_jobs()->set_name("a-job");
  status.set_jobs_total(total);
  return status;
}

TEST(StatusLinesTest, SayThatThereAreMoreJobs) {
  EXPECT_EQ(StatusLines(OneOfJobs(5000)).back().text,
            "1 of 5000 jobs; all of them:  rollcall status");
  EXPECT_EQ(StatusLines(OneOfJobs(1)).size(), 1u);
}

TEST(WatchLinesTest, CountTheJobsThatAreLeftOut) {
  EXPECT_EQ(WatchLines(OneOfJobs(5000), 0, 200, 40).front().text.find("rollcall: 1 of 5000 jobs, "),
            0u);
  EXPECT_EQ(WatchLines(OneOfJobs(1), 0, 200, 40).front().text.find("rollcall: 1 job, "), 0u);
}

}  // namespace
}  // namespace rollcall
