// SPDX-License-Identifier: Apache-2.0
#include "daemon/history/history_write.h"

#include <gtest/gtest.h>

#include "histories.h"

namespace rollcall {
namespace {

TEST(HistoryWrite, TellsWhichJobEachWriteIsAbout) {
  const JobId train = {"team", "train"};
  v1::Incident incident = OpenIncident("train", 1);
  incident.set_tenant("team");
  const JobKey second(train, 2);
  for (const v1::HistoryWrite& write :
       {WriteOfIncident(incident), WriteOfAlert(Alert("team:train-1", 1, "confirmed")),
        WriteOfAlertMark("team:train-1", 1, ""), WriteOfHosts(second, {"node-1"}, 5),
        WriteOfForgottenHosts(second), WriteOfAttempts({{second, {}}, {JobKey(train, 3), {}}}, 5),
        WriteOfForgottenAttempt(second)}) {
    EXPECT_TRUE(JobOf(write) == train) << write.ShortDebugString();
  }
  for (const v1::HistoryWrite& write :
       {WriteOfAction({}), WriteOfSilence({}),
        WriteOfAttempts({{second, {}}, {JobKey("other"), {}}}, 5)}) {
    EXPECT_EQ(JobOf(write).job, "") << write.ShortDebugString();
  }
}

TEST(HistoryWrite, SplitsAttemptsOfSeveralJobsAndLosesNone) {
  const std::map<JobKey, AttemptFacts> attempts = {
      {JobKey("a"), {2, "", "", false, {}}}, {JobKey("a", 1), {}}, {JobKey("b"), {}}};
  const std::vector<v1::HistoryWrite> parts = ByJob(WriteOfAttempts(attempts, 5));
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_EQ(JobOf(parts[0]).job, "a");
  ASSERT_EQ(parts[0].attempts().attempts_size(), 2);
  EXPECT_EQ(parts[0].attempts().attempts(0).world_size(), 2);
  EXPECT_EQ(JobOf(parts[1]).job, "b");
  for (const v1::HistoryWrite& part : parts) EXPECT_EQ(part.attempts().seen_ns(), 5);
  EXPECT_EQ(ByJob(WriteOfForgottenHosts(JobKey("a"))).size(), 1u);
}

}  // namespace
}  // namespace rollcall
