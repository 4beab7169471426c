// SPDX-License-Identifier: Apache-2.0
// A job that flaps: which of its incidents are stored and announced.
#include "daemon/incidents/incident_quota.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "base/durations.h"

namespace rollcall {
namespace {

constexpr int64_t kHour = 3600 * kSecond;

class IncidentQuotaTest : public testing::Test {
 protected:
  static v1::Incident Make(int number) {
    v1::Incident incident;
    incident.set_id(absl::StrCat("train-", number));
    incident.add_verdicts()->set_summary("rank 3 is absent");
    incident.add_stacks();
    return incident;
  }
  static v1::Incident Closed(int number) {
    v1::Incident incident = Make(number);
    incident.mutable_closed_at()->set_seconds(1);
    return incident;
  }
  // A hang is confirmed and resolved a second later.
  bool Flap(int number, int64_t now_ns) {
    const bool may_alert = quota_.MayAlert(job_, Make(number), now_ns);
    quota_.Update(job_, Closed(number));
    return may_alert;
  }
  std::vector<std::string> Summaries(int64_t now_ns) {
    std::vector<std::string> summaries;
    for (const IncidentQuota::Due& due : quota_.TakeDue(now_ns)) {
      summaries.push_back(absl::StrCat(due.incident.id(), " ", due.incident.verdicts(0).summary()));
    }
    return summaries;
  }

  const JobId job_ = {kDefaultTenant, "train"};
  IncidentQuota quota_{{}};
};

using Texts = std::vector<std::string>;

TEST_F(IncidentQuotaTest, SixHangsAnHourAreAnnouncedAndTheOthersInOneAlert) {
  int announced = 0;
  for (int i = 1; i <= 20; ++i) announced += Flap(i, i * 60 * kSecond);
  EXPECT_EQ(announced, 6);
  EXPECT_EQ(Summaries(kHour + 59 * kSecond), Texts{}) << "the first alert was at 60 s";
  EXPECT_EQ(Summaries(kHour + 60 * kSecond),
            Texts{"train-20 flapping: 14 more incidents in the last hour; the newest: "
                  "rank 3 is absent"});
  EXPECT_EQ(Summaries(kHour + 61 * kSecond), Texts{}) << "told of once";
}

TEST_F(IncidentQuotaTest, TheAlertForAllCountsToo) {
  for (int i = 1; i <= 7; ++i) Flap(i, kSecond);
  EXPECT_EQ(Summaries(kHour + kSecond).size(), 1u);
  int announced = 0;
  for (int i = 8; i <= 20; ++i) announced += Flap(i, kHour + 2 * kSecond);
  EXPECT_EQ(announced, 5);
}

TEST_F(IncidentQuotaTest, AHangThatLastsIsAnnouncedAlthoughTheJobHasHadItsAlerts) {
  for (int i = 1; i <= 8; ++i) Flap(i, i * kSecond);
  EXPECT_FALSE(quota_.MayAlert(job_, Make(9), 10 * kSecond));
  EXPECT_EQ(Summaries(309 * kSecond), Texts{});
  EXPECT_EQ(Summaries(310 * kSecond),
            Texts{"train-9 flapping: 3 more incidents in the last hour; the newest: "
                  "rank 3 is absent"});
}

TEST_F(IncidentQuotaTest, OneAlertThatWasHeldBackSaysWhatItWouldHaveSaid) {
  for (int i = 1; i <= 7; ++i) Flap(i, kSecond);
  EXPECT_EQ(Summaries(2 * kHour), Texts{"train-7 rank 3 is absent"});
}

TEST_F(IncidentQuotaTest, TheAlertKnowsThatTheIncidentIsOverAndHasNoStacks) {
  for (int i = 1; i <= 7; ++i) Flap(i, kSecond);
  const std::vector<IncidentQuota::Due> due = quota_.TakeDue(2 * kHour);
  ASSERT_EQ(due.size(), 1u);
  EXPECT_TRUE(due[0].incident.has_closed_at());
  EXPECT_EQ(due[0].incident.stacks_size(), 0);
}

TEST_F(IncidentQuotaTest, NothingIsHeldBackAtFewHangs) {
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(Flap(i, i * 601 * kSecond)) << i;
  EXPECT_EQ(Summaries(1000 * kHour), Texts{});
}

TEST_F(IncidentQuotaTest, OneJobDoesNotTakeTheAlertsOfAnother) {
  for (int i = 1; i <= 20; ++i) Flap(i, kSecond);
  EXPECT_TRUE(quota_.MayAlert({kDefaultTenant, "other"}, Make(1), kSecond));
  EXPECT_TRUE(quota_.MayAlert({"team", "train"}, Make(1), kSecond));
}

TEST_F(IncidentQuotaTest, SixtyIncidentsAnHourAreStored) {
  int stored = 0;
  for (int i = 0; i < 1000; ++i) stored += quota_.MayStoreOpened(job_, i * kSecond);
  EXPECT_EQ(stored, 60);
  EXPECT_FALSE(quota_.MayStoreOpened(job_, kHour - 1));
  EXPECT_TRUE(quota_.MayStoreOpened(job_, kHour));
}

TEST_F(IncidentQuotaTest, SuspicionsHideNoHang) {
  for (int i = 0; i < 1000; ++i) quota_.MayStoreOpened(job_, kSecond);
  EXPECT_TRUE(quota_.MayStoreConfirmed(job_, false, kSecond));
  for (int i = 0; i < 60; ++i) quota_.MayStoreConfirmed(job_, false, kSecond);
  EXPECT_FALSE(quota_.MayStoreConfirmed(job_, false, kSecond));
  EXPECT_TRUE(quota_.MayStoreConfirmed(job_, true, kSecond)) << "it is stored";
}

TEST_F(IncidentQuotaTest, AQuietJobTakesNoMemory) {
  for (int i = 0; i < 1000; ++i) {
    const JobId job = {kDefaultTenant, absl::StrCat(i)};
    quota_.MayStoreOpened(job, kSecond);
    quota_.MayAlert(job, Make(i), kSecond);
  }
  EXPECT_EQ(quota_.jobs(), 1000u);
  quota_.TakeDue(kHour + kSecond);
  EXPECT_EQ(quota_.jobs(), 0u);
}

}  // namespace
}  // namespace rollcall
