// SPDX-License-Identifier: Apache-2.0
#include "daemon/web/job_health.h"

#include <gtest/gtest.h>

namespace rollcall {
namespace {

JobHealth Of(const char* state, const char* summary = "") {
  v1::JobStatus job;
  job.set_state(state);
  job.set_summary(summary);
  return HealthOf(job);
}

TEST(JobHealthTest, AJobThatGoesOnIsHealthy) {
  EXPECT_EQ(Of("running").http_status, 200);
  EXPECT_EQ(Of("running").line, "ok: running");
  EXPECT_EQ(Of("waiting").line, "ok: waiting");
}

TEST(JobHealthTest, AHungJobIsNotAndTheLineSaysWhy) {
  EXPECT_EQ(Of("hung", "rank 3 has not called").http_status, 503);
  EXPECT_EQ(Of("hung", "rank 3 has\nnot called").line, "hung: rank 3 has not called");
}

TEST(JobHealthTest, ASuspicionMayBeWrong) {
  EXPECT_EQ(Of("suspected", "rank 3 is late").http_status, 200);
  EXPECT_EQ(Of("suspected", "rank 3 is late").line, "ok: suspected: rank 3 is late");
}

TEST(JobHealthTest, AnEndedJobServesNoRequests) {
  EXPECT_EQ(Of("ended").http_status, 503);
  EXPECT_EQ(Of("ended").line, "ended");
}

}  // namespace
}  // namespace rollcall
