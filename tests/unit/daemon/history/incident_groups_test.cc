// SPDX-License-Identifier: Apache-2.0
// Which hangs are alike, and what people read of it.
#include "daemon/history/incident_groups.h"

#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"

namespace rollcall {
namespace {

struct Facts {
  std::string job = "train";
  std::string communicator = "dp";
  std::string id = "a91f";
  int rank = 3;
  std::string host = "node-17";
  std::string at = "/x/train.py:57 in validate";
  double position = 8812;
};

v1::Incident Incident(const Facts& facts) {
  v1::Incident incident;
  incident.set_id(absl::StrCat(facts.job, "-1"));
  incident.set_job(facts.job);
  v1::Verdict* root = incident.add_verdicts();
  root->set_cause("missing_rank");
  root->mutable_communicator()->set_name(facts.communicator);
  root->mutable_communicator()->set_id(facts.id);
  root->mutable_call()->set_operation("AllReduce");
  root->mutable_call()->set_position(facts.position);
  v1::Culprit* culprit = root->add_culprits();
  culprit->set_rank(facts.rank);
  culprit->set_host(facts.host);
  culprit->set_at(facts.at);
  return incident;
}

std::string Signature(const Facts& facts) { return SignatureOf(Incident(facts)); }

TEST(IncidentSignature, IsTheCauseTheCallAndThePlaceOfTheCulprits) {
  EXPECT_EQ(Signature({}), "missing_rank/AllReduce/dp/train.py:validate");
  EXPECT_EQ(SignatureOf(v1::Incident()), "");
}

TEST(IncidentSignature, IsEqualForOtherRanksHostsJobsPositionsAndLines) {
  Facts other;
  other.job = "tune";
  other.id = "77aa";
  other.rank = 5;
  other.host = "node-3";
  other.at = "/home/y/train.py:61 in validate";
  other.position = 12;
  EXPECT_EQ(Signature(other), Signature({}));
}

TEST(IncidentSignature, DiffersByPlaceAndByCommunicator) {
  Facts elsewhere;
  elsewhere.at = "/x/train.py:57 in save";
  EXPECT_NE(Signature(elsewhere), Signature({}));
  Facts tensor;
  tensor.communicator = "tp";
  EXPECT_NE(Signature(tensor), Signature({}));
}

TEST(IncidentSignature, LeavesOutTheNumbersOfACommunicator) {
  Facts stage;
  stage.communicator = "pp_11";
  EXPECT_EQ(Signature(stage), "missing_rank/AllReduce/pp_#/train.py:validate");
  Facts ranks;
  ranks.communicator = "4 ranks: 0,2,4,6";
  EXPECT_EQ(Signature(ranks), "missing_rank/AllReduce/4 ranks/train.py:validate");
}

TEST(IncidentSignature, NamesThePlaceOfMostCulpritsAndElseTheirLastCall) {
  v1::Incident incident = Incident({});
  for (int i = 0; i < 2; ++i) incident.mutable_verdicts(0)->add_culprits()->set_code("a.py:3 in f");
  EXPECT_EQ(SignatureOf(incident), "missing_rank/AllReduce/dp/a.py:f");
}

TEST(HangOf, IsOneCallOfOneCommunicatorOfAnAttempt) {
  v1::Incident again = Incident({});
  again.set_id("train-2");
  EXPECT_EQ(HangOf(again), HangOf(Incident({})));
  Facts later;
  later.position = 8813;
  EXPECT_NE(HangOf(Incident(later)), HangOf(again));
  again.set_attempt(1);
  EXPECT_NE(HangOf(again), HangOf(Incident({})));
  EXPECT_EQ(HangOf(v1::Incident()), "");
}

v1::IncidentGroup GroupOn(const std::vector<std::pair<int, std::string>>& culprits) {
  v1::IncidentGroup group;
  for (const auto& [rank, host] : culprits) {
    Facts facts;
    facts.rank = rank;
    facts.host = host;
    AddHang(Incident(facts), &group);
  }
  return group;
}

TEST(Recurrence, SaysHowOftenAndWhichHostComesBack) {
  const auto same = GroupOn({{3, "node-17"}, {5, "node-17"}, {1, "node-17"}, {3, "node-17"}});
  EXPECT_EQ(RecurrenceInWords(same, 7),
            "the 4th time in 7 days, each time with a culprit on node-17");
  const auto most = GroupOn({{3, "node-17"}, {5, "node-3"}, {1, "node-17"}});
  EXPECT_EQ(RecurrenceInWords(most, 7),
            "the 3rd time in 7 days, 2 times with a culprit on node-17");
  const auto both = GroupOn({{3, "node-17"}, {5, "node-17"}});
  EXPECT_EQ(GroupInWords(both), "twice, both times with a culprit on node-17");
}

TEST(Recurrence, NamesTheRankIfOnlyTheRankRecurs) {
  EXPECT_EQ(RecurrenceInWords(GroupOn({{3, "a"}, {3, "b"}, {3, "c"}}), 7),
            "the 3rd time in 7 days, each time with rank 3 as a culprit");
  EXPECT_EQ(RecurrenceInWords(GroupOn({{3, "a"}, {4, "b"}}), 7), "the 2nd time in 7 days");
  EXPECT_EQ(RecurrenceInWords(GroupOn({{3, "a"}}), 7), "");
}

TEST(Recurrence, CountsInEnglish) {
  std::vector<std::pair<int, std::string>> many(11, {3, "a"});
  EXPECT_EQ(RecurrenceInWords(GroupOn(many), 7),
            "the 11th time in 7 days, each time with a culprit on a");
  many.resize(22, {3, "a"});
  EXPECT_EQ(RecurrenceInWords(GroupOn(many), 7),
            "the 22nd time in 7 days, each time with a culprit on a");
}

}  // namespace
}  // namespace rollcall
