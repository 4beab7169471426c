// SPDX-License-Identifier: Apache-2.0
// The incidents in memory: what a new state keeps, who finds them, and what counts as a change.
#include "daemon/incidents/incident_table.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "incident_book_fixture.h"

namespace rollcall {
namespace {

JobKey Attempt(const std::string& job, int32_t attempt) { return {JobId(JobKey(job)), attempt}; }

TEST(IncidentRecordTest, ANewStateKeepsWhatOthersHaveAdded) {
  IncidentRecord record;
  record.incident = Confirmed();
  record.incident.add_notes()->set_text("the switch again");
  record.incident.add_stacks()->set_pid(7);
  record.incident.mutable_verdicts(0)->add_advice()->set_id("uneven-inputs");
  Incident now;
  now.id = "train-1";
  now.opened_ns = 5;
  now.verdicts = Hang();
  Rewrite(now, &record);
  EXPECT_EQ(record.incident.verdicts(0).summary(), Hang()[0].summary);
  EXPECT_EQ(record.incident.notes_size(), 1);
  EXPECT_EQ(record.incident.stacks_size(), 1);
  EXPECT_EQ(record.incident.opened_at().seconds(), 1000) << "somebody has set the clock";
  EXPECT_EQ(record.incident.verdicts(0).advice(0).id(), "uneven-inputs")
      << "a restarted daemon has no stacks";
  EXPECT_TRUE(record.dirty && record.unsaved);
  record.confirmed_ns = 6;
  Rewrite(now, &record);
  EXPECT_TRUE(record.incident.verdicts(0).advice().empty()) << "this daemon has judged it";
}

TEST(IncidentRecordTest, TheOldestOfTooManyGivesWay) {
  JobIncidents job(JobKey("train"), 0);
  for (int i = 1; i <= 101; ++i) {
    AddRecord(absl::StrCat("train-", i), &job)->incident.set_id(absl::StrCat("train-", i));
  }
  EXPECT_EQ(job.records.size(), 100u);
  EXPECT_EQ(FindRecord("train-1", &job), nullptr);
  EXPECT_EQ(AddRecord("train-101", &job), &job.records.back());
}

TEST(IncidentTableTest, FindsTheAttemptsOfAJobInTheirOrder) {
  IncidentTable table;
  for (const JobKey& key : {Attempt("train", 1), Attempt("train", 0), Attempt("training", 0)}) {
    table.jobs().try_emplace(key, key, 0);
  }
  const std::vector<JobIncidents*> attempts = table.AttemptsOf(JobKey("train"));
  ASSERT_EQ(attempts.size(), 2u);
  EXPECT_EQ(attempts[0]->key.attempt, 0);
  EXPECT_EQ(attempts[1]->key.attempt, 1);
  EXPECT_TRUE(table.Has(JobKey("training")));
  EXPECT_FALSE(table.Has(JobKey("tra")));
}

TEST(IncidentTableTest, AChangeIsSeenAndIsPendingOnce) {
  IncidentTable table;
  const JobKey key("train");
  JobIncidents& job = table.jobs().try_emplace(key, key, 0).first->second;
  IncidentRecord* const record = AddRecord("train-1", &job);
  record->incident.set_id("train-1");
  table.SetChanged(&job, record);
  table.SetChanged(&job, record);
  EXPECT_EQ(table.changes(), 2u);
  EXPECT_EQ(job.changes, 2u);
  EXPECT_TRUE(record->unsaved);
  EXPECT_EQ(table.TakePending(), (IncidentTable::Ids{{key, "train-1"}}));
  EXPECT_TRUE(table.TakePending().empty());
  table.Erase(key);
  EXPECT_EQ(table.changes(), 3u) << "people see that the job has gone";
}

}  // namespace
}  // namespace rollcall
