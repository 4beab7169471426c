// SPDX-License-Identifier: Apache-2.0
// Which incidents a silence holds back, and how often it counts them.
#include "daemon/incidents/silenced_alerts.h"

#include <gtest/gtest.h>

#include "daemon/incidents/stored_incident.h"
#include "incident_book_fixture.h"

namespace rollcall {
namespace {

class SilencedAlertsTest : public testing::Test {
 protected:
  SilencedAlertsTest() {
    writers_.history = std::make_unique<HistoryKeeper>(HistoryKeeperOptions());
    EXPECT_TRUE(writers_.history->Start().ok());
    job_->life.Restore(FromStored(Confirmed()));
    record_->incident = Confirmed();
  }
  std::string Begin(const std::string& job) {
    v1::Silence wanted;
    wanted.set_job(job);
    const auto silence = silenced_.Add(wanted, 3600, "ada", Tenants::All());
    EXPECT_TRUE(silence.ok()) << silence.status();
    return silence.ok() ? silence->id() : "";
  }

  const AllThreadsEnd threads_;
  Timeline timeline_;
  IncidentWriters writers_;
  IncidentTable table_;
  SilencedAlerts silenced_{IncidentBookOptions(), &writers_, &timeline_, &table_};
  JobIncidents* const job_ =
      &table_.jobs().try_emplace(JobKey("train"), JobKey("train"), 0).first->second;
  IncidentRecord* const record_ = AddRecord("train-1", job_);
};

TEST_F(SilencedAlertsTest, ANewSilenceHoldsBackTheLiveHangsThatItFits) {
  Begin("other-*");
  EXPECT_FALSE(record_->incident.has_silenced());
  Begin("train");
  EXPECT_EQ(record_->incident.silenced().who(), "ada");
  EXPECT_EQ(table_.TakePending().size(), 1u);
}

TEST_F(SilencedAlertsTest, EachSilenceCountsAHangOnce) {
  Begin("train");
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(silenced_.Check(*job_, record_));
  EXPECT_EQ(silenced_.List(Tenants::All())[0].incidents(), 1);
  EXPECT_EQ(silenced_.alerts(), 1u);
}

TEST_F(SilencedAlertsTest, AHangThatOutlastsItsSilenceIsTakenOnce) {
  const std::string silence = Begin("train");
  EXPECT_TRUE(silenced_.TakeUnsilenced().empty());
  ASSERT_TRUE(silenced_.End(silence, Tenants::All()).ok());
  EXPECT_EQ(silenced_.TakeUnsilenced().size(), 1u);
  EXPECT_FALSE(record_->incident.has_silenced());
  EXPECT_TRUE(silenced_.TakeUnsilenced().empty());
}

TEST_F(SilencedAlertsTest, AHangThatIsOverIsNoLongerHeldBack) {
  const std::string silence = Begin("train");
  job_->life.End(timeline_.Now());
  ASSERT_TRUE(silenced_.End(silence, Tenants::All()).ok());
  EXPECT_TRUE(silenced_.TakeUnsilenced().empty());
  EXPECT_TRUE(record_->incident.has_silenced()) << "why nobody was told";
}

}  // namespace
}  // namespace rollcall
