// SPDX-License-Identifier: Apache-2.0
// The hangs of a job over its attempts.
#include "daemon/incidents/hang_rows.h"

#include <gtest/gtest.h>

#include "base/durations.h"
#include "incident_book_fixture.h"

namespace rollcall {
namespace {

class HangRowsTest : public testing::Test {
 protected:
  JobIncidents* Attempt(int32_t attempt) {
    const JobKey key(JobId(JobKey("train")), attempt);
    return &table_.jobs().try_emplace(key, key, 0).first->second;
  }
  // A hang of the attempt is confirmed, and joins its row.
  IncidentRecord* AddHang(const std::string& id, JobIncidents* job) {
    IncidentRecord* const record = AddRecord(id, job);
    record->incident = Confirmed();
    record->incident.set_id(id);
    rows_.Join(*job, now_ns_, record);
    return record;
  }

  IncidentTable table_;
  HangRows rows_{&table_};
  int64_t now_ns_ = 1001 * kSecond;
};

TEST_F(HangRowsTest, TheFirstHangOfARowNamesTheNewest) {
  Attempt(0)->records.reserve(2);
  IncidentRecord* const first = AddHang("train-1", Attempt(0));
  first->incident.mutable_acknowledged()->set_who("ada");
  const IncidentRecord* const second = AddHang("train-2", Attempt(1));
  EXPECT_EQ(first->incident.repeat().newest(), "train-2");
  EXPECT_EQ(second->incident.repeat().first(), "train-1");
  EXPECT_EQ(second->incident.acknowledged().who(), "ada") << "she takes care of all";
}

TEST_F(HangRowsTest, WhoTakesTheFirstHangTakesTheNewestOfItsRow) {
  IncidentRecord* const first = AddHang("train-1", Attempt(0));
  const IncidentRecord* const second = AddHang("train-2", Attempt(1));
  first->incident.mutable_acknowledged()->set_who("ada");
  rows_.ShareAcknowledgement(first->incident);
  EXPECT_EQ(second->incident.acknowledged().who(), "ada");
  first->incident.clear_acknowledged();
  rows_.ShareAcknowledgement(first->incident);
  EXPECT_FALSE(second->incident.has_acknowledged());
}

TEST_F(HangRowsTest, AnAttemptThatMakesCallsGoesOnAfterTheHangOfAnEarlierOne) {
  IncidentRecord* const hang = AddHang("train-1", Attempt(0));
  hang->incident.set_state("ended");
  Attempt(1);
  rows_.GoOn(JobKey("train"), now_ns_);
  EXPECT_FALSE(hang->incident.has_went_on_in()) << "it may hang as well";
  Attempt(1)->has_made_calls = true;
  rows_.GoOn(JobKey("train"), now_ns_);
  EXPECT_EQ(hang->incident.went_on_in(), 1);
}

TEST_F(HangRowsTest, TheEndOfAHangWaitsWhereTheJobMayBeRestarted) {
  JobIncidents* const job = Attempt(0);
  v1::Incident ended = AddHang("train-1", job)->incident;
  rows_.SetTold(ended, true);
  ended.set_state("ended");
  ended.mutable_closed_at()->set_seconds(1002);
  AttemptChanges changes;
  changes.changed[job->key].restarts = "torchrun";
  rows_.SetRestartable(changes);
  EXPECT_FALSE(rows_.EndsNow(*job, ended, /*is_last=*/false, now_ns_));
  const std::vector<v1::Incident> due = rows_.TakeEnds(INT64_MAX);
  ASSERT_EQ(due.size(), 1u);
  EXPECT_EQ(due[0].id(), "train-1");
}

TEST_F(HangRowsTest, TheEndOfAHangNamesTheHangAfterIt) {
  JobIncidents* const job = Attempt(0);
  job->records.reserve(2);
  v1::Incident resolved = AddHang("train-1", job)->incident;
  resolved.set_state("resolved");
  resolved.mutable_closed_at()->set_seconds(1002);
  ASSERT_FALSE(rows_.EndsNow(*job, resolved, /*is_last=*/false, now_ns_));
  v1::Incident* const other = &AddRecord("train-2", job)->incident;
  *other = Confirmed();
  other->set_id("train-2");
  other->mutable_confirmed_at()->set_seconds(1003);
  const std::vector<v1::Incident> due = rows_.TakeEnds(INT64_MAX);
  ASSERT_EQ(due.size(), 1u);
  EXPECT_EQ(due[0].repeat().later(), "train-2");
}

}  // namespace
}  // namespace rollcall
