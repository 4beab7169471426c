// SPDX-License-Identifier: Apache-2.0
// What hangs that last cost now.
#include "daemon/history/incident_growth.h"

#include <gtest/gtest.h>

#include "base/durations.h"

namespace rollcall {
namespace {

// 16,384 ranks wait since 1,000 s; confirmed after 8 s.
v1::Incident Hang() {
  v1::Incident incident;
  incident.set_id("gpt-1");
  incident.set_job("gpt");
  incident.set_ranks(16'384);
  incident.mutable_waits_since()->set_seconds(1000);
  incident.mutable_opened_at()->set_seconds(1002);
  incident.mutable_confirmed_at()->set_seconds(1008);
  incident.add_verdicts()->set_cause("missing_rank");
  return incident;
}

v1::CountIncidentsRequest ByCause() {
  v1::CountIncidentsRequest request;
  request.set_by("cause");
  return request;
}

// As the history counts the hang: up to its confirmation.
v1::CountIncidentsResponse Stored() {
  v1::CountIncidentsResponse response;
  for (const char* cause : {"rank_died", "missing_rank"}) {
    v1::IncidentCount* count = response.add_counts();
    count->set_value(cause);
    count->set_incidents(1);
    count->set_lost_rank_seconds(8 * 16'384.0);
  }
  return response;
}

TEST(IncidentGrowthTest, AHangThatLastsCostsWhatItCostsNow) {
  EXPECT_EQ(LostRankSeconds(Hang(), 1300 * kSecond), 300 * 16'384.0);
  v1::Incident over = Hang();
  over.mutable_closed_at()->set_seconds(1060);
  EXPECT_EQ(LostRankSeconds(over, 1300 * kSecond), 60 * 16'384.0);
}

TEST(IncidentGrowthTest, ASuspicionCostsNothing) {
  v1::Incident suspected = Hang();
  suspected.clear_confirmed_at();
  EXPECT_EQ(LostRankSeconds(suspected, 1300 * kSecond), 0);
}

TEST(IncidentGrowthTest, CountsHaveTheCostOfNowAndTheirOrder) {
  v1::CountIncidentsResponse counts = Stored();
  AddGrowth({Hang()}, ByCause(), 1300 * kSecond, &counts);
  EXPECT_EQ(counts.counts(0).value(), "missing_rank");
  EXPECT_EQ(counts.counts(0).lost_rank_seconds(), 300 * 16'384.0);
  EXPECT_EQ(counts.counts(1).lost_rank_seconds(), 8 * 16'384.0);
}

TEST(IncidentGrowthTest, WhatTheQuestionLeavesOutAddsNothing) {
  v1::CountIncidentsRequest request = ByCause();
  request.set_job("other");
  v1::CountIncidentsResponse counts = Stored();
  AddGrowth({Hang()}, request, 1300 * kSecond, &counts);
  EXPECT_EQ(counts.counts(1).lost_rank_seconds(), 8 * 16'384.0);
}

}  // namespace
}  // namespace rollcall
