// SPDX-License-Identifier: Apache-2.0
// What a restarted daemon waits for, and what it says of hosts that do not come.
#include "daemon/incidents/returning_hosts.h"

#include <gtest/gtest.h>

#include "base/durations.h"
#include "incident_book_fixture.h"

namespace rollcall {
namespace {

constexpr int64_t kStart = 1000 * kSecond;
constexpr int64_t kEarlier = kStart - 100 * kSecond;

// A daemon with a history, which it has read.
ReturningHosts Restarted() {
  ReturningHosts returning;
  returning.Begin(kStart, /*has_history=*/true);
  returning.SetKnown();
  return returning;
}

TEST(ReturningHostsTest, AwaitsMissingHostsForAWhile) {
  const ReturningHosts returning = Restarted();
  JobIncidents job(JobKey("train"), 0);
  EXPECT_FALSE(returning.Awaits(job, kStart));
  job.hosts.Restore({"node-1", "node-2"});
  EXPECT_TRUE(returning.Awaits(job, kStart + kReturnWithinNs - 1));
  EXPECT_FALSE(returning.Awaits(job, kStart + kReturnWithinNs));
  job.restored_ns = kStart + kSecond;  // another daemon had it until then
  EXPECT_TRUE(returning.Awaits(job, kStart + kReturnWithinNs));
}

TEST(ReturningHostsTest, AwaitsTheHostsOfAllJobsUntilTheHistoryIsReadable) {
  ReturningHosts returning;
  returning.Begin(kStart, /*has_history=*/true);
  const JobIncidents job(JobKey("train"), 0);
  EXPECT_TRUE(returning.Awaits(job, kStart));
  returning.SetKnown();
  EXPECT_FALSE(returning.Awaits(job, kStart));
}

TEST(ReturningHostsTest, NamesAFewOfTheHostsThatHaveNotCome) {
  JobIncidents small(JobKey("train"), 0), large(JobKey("train"), 0);
  small.hosts.Restore({"a", "b"});
  EXPECT_EQ(Restarted().WhatIsNotSeen(RunningJob(), small, kBeganNow),
            "2 hosts have not reported since the daemon was restarted: a, b");
  large.hosts.Restore({"a", "b", "c", "d", "e", "f"});
  EXPECT_EQ(Restarted().WhatIsNotSeen(RunningJob(), large, kBeganNow),
            "6 hosts have not reported since the daemon was restarted, among them a, b, c, d, e");
}

TEST(ReturningHostsTest, MissesTheRanksOfAnEarlierJobWithoutAHistory) {
  JobState state = RunningJob();
  state.processes[0].global_rank = 0;
  state.processes[0].world_size = 3;
  const JobIncidents job(JobKey("train"), 0);
  ReturningHosts returning;
  returning.Begin(kStart, /*has_history=*/false);
  EXPECT_EQ(returning.WhatIsNotSeen(state, job, kEarlier),
            "the daemon was started after the job, and of 3 ranks 2 have not been reported since");
  EXPECT_EQ(returning.WhatIsNotSeen(state, job, kStart), "") << "it saw the job begin";
  EXPECT_EQ(Restarted().WhatIsNotSeen(state, job, kEarlier), "") << "its hosts are recorded";
}

TEST(ReturningHostsTest, NoVerdictThatLacksAHostIsCertain) {
  v1::Incident incident;
  incident.add_verdicts()->set_certainty("certain");
  incident.add_verdicts()->set_certainty("possible");
  for (int i = 0; i < 2; ++i) Weaken("node-1 is silent", &incident);
  EXPECT_EQ(incident.verdicts(0).certainty(), "likely");
  EXPECT_EQ(incident.verdicts(1).certainty(), "possible");
  EXPECT_EQ(incident.verdicts(0).missing_evidence_size(), 1) << "once";
}

}  // namespace
}  // namespace rollcall
