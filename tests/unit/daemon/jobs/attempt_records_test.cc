// SPDX-License-Identifier: Apache-2.0
#include "daemon/jobs/attempt_records.h"

#include <gtest/gtest.h>

namespace rollcall {
namespace {

const JobId kTrain = {"default", "train"};

ProcessStart StartOf(int pid, const std::string& launch) {
  ProcessStart start;
  start.process = {"node-1", pid, 1};
  start.rank = 0;
  start.world_size = 1;
  start.uses_nccl = true;
  start.started_ns = 1'000'000'000;
  start.launch = launch;
  return start;
}

TEST(AttemptRecordsTest, GoesOnWithTheNumbersOfAnEarlierDaemon) {
  AttemptRecords records;
  AttemptFacts facts;
  facts.world_size = 1;
  records.Restore({{JobKey(kTrain, 4), facts}});
  EXPECT_FALSE(records.Has(kTrain)) << "its processes have not come";
  EXPECT_EQ(records.Of(kTrain).newest(), 4);
  EXPECT_TRUE(records.Has(kTrain));
}

TEST(AttemptRecordsTest, FindsTheAttemptsOfALaunchInItsTenantOnly) {
  AttemptRecords records;
  const JobId other = {"default", "other"}, foreign = {"team", "train"}, apart = {"default", "x"};
  for (const JobId& name : {kTrain, other, foreign})
    records.Of(name).Place(StartOf(7, "here:29500"));
  records.Of(apart).Place(StartOf(8, "there:29500"));
  const JobKey train(kTrain, records.Of(kTrain).newest());
  const JobKey with(other, records.Of(other).newest());
  EXPECT_EQ(records.OfSameLaunch(train), (std::set<JobKey>{train, with}));
}

TEST(AttemptRecordsTest, AForgottenAttemptIsToBeForgottenInTheHistoryUnlessAnotherDaemonHasIt) {
  AttemptRecords records;
  const JobKey train(kTrain, records.Of(kTrain).Place(StartOf(7, "")));
  records.RecordMember(train, {"node-1", 7, 1}, 0);
  records.Forget(train);
  const AttemptChanges changes = records.TakeChanges({});
  EXPECT_TRUE(changes.changed.empty());
  EXPECT_EQ(changes.forgotten, std::set<JobKey>{train});
  records.Forget(train);
  records.KeepStored(train);
  EXPECT_TRUE(records.TakeChanges({}).forgotten.empty());
}

}  // namespace
}  // namespace rollcall
