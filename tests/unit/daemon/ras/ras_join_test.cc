// SPDX-License-Identifier: Apache-2.0
// What RAS adds to, and takes from, a verdict that rests on stacks.
#include "daemon/ras/ras_join.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "daemon/ras/ras_json.h"
#include "ras_answers.h"

namespace rollcall {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

// Global ranks 10 to 13 on two hosts; the second one's processes are in containers.
std::vector<RasMember> Members() {
  return {{10, "node-1", 100, 0},
          {11, "node-1", 101, 0},
          {12, "node-2", 7002, 102},
          {13, "node-2", 7003, 103}};
}

v1::Incident ByStacks(int32_t culprit, const std::string& certainty = "possible") {
  v1::Incident incident;
  v1::Verdict* verdict = incident.add_verdicts();
  verdict->set_cause("standstill");
  verdict->set_certainty(certainty);
  verdict->add_culprits()->set_rank(culprit);
  verdict->set_culprit_ranks(std::to_string(culprit));
  verdict->set_summary("by stacks");
  return incident;
}

v1::RasAnswer Answer(const std::string& text) {
  v1::RasAnswer answer;
  answer.set_text(text);
  return answer;
}

TEST(RasJoinTest, AgreementMakesAVerdictLikely) {
  v1::Incident incident = ByStacks(12);
  JoinRas(Answer(OneRankBehind()), Members(), &incident);
  const v1::Verdict& verdict = incident.verdicts(0);
  EXPECT_EQ(verdict.certainty(), "likely");
  EXPECT_EQ(verdict.summary(), "by stacks");
  EXPECT_THAT(verdict.evidence(), Contains(HasSubstr("NCCL's RAS blames the same: ")));
  EXPECT_THAT(verdict.evidence(), Contains(HasSubstr("1 rank has launched 8811: rank 2 (process "
                                                     "7002 on node-2)")));
  EXPECT_THAT(verdict.missing_evidence(), IsEmpty());
}

TEST(RasJoinTest, AContradictionLeavesAVerdictPossible) {
  v1::Incident incident = ByStacks(11, "likely");
  JoinRas(Answer(OneRankBehind()), Members(), &incident);
  EXPECT_EQ(incident.verdicts(0).certainty(), "possible");
  EXPECT_THAT(incident.verdicts(0).missing_evidence(),
              ElementsAre(HasSubstr("NCCL's RAS shows something else")));
}

TEST(RasJoinTest, WithoutAVerdictThatOfRasLeads) {
  v1::Incident incident;
  JoinRas(Answer(OneRankBehind()), Members(), &incident);
  ASSERT_THAT(incident.verdicts(), SizeIs(1));
  const v1::Verdict& verdict = incident.verdicts(0);
  EXPECT_EQ(verdict.cause(), "missing_rank");
  EXPECT_EQ(verdict.certainty(), "possible");
  ASSERT_THAT(verdict.culprits(), SizeIs(1));
  EXPECT_EQ(verdict.culprits(0).rank(), 12);
  EXPECT_EQ(verdict.culprits(0).host(), "node-2");
  EXPECT_EQ(verdict.culprits(0).pid(), 7002);
  EXPECT_EQ(verdict.call().operation(), "AllReduce");
}

TEST(RasJoinTest, TwoAnswersAreCompared) {
  EXPECT_TRUE(HaveSameCounts(Answer(OneRankBehind()), Answer(OneRankBehind())));
  EXPECT_FALSE(HaveSameCounts(Answer(OneRankBehind()), Answer(JsonAnswer({}))));
  EXPECT_FALSE(HaveSameCounts(Answer(OneRankBehind()), v1::RasAnswer()));
}

TEST(RasJoinTest, EqualCountsAreEvidenceOnly) {
  v1::Incident incident = ByStacks(12);
  JoinRas(Answer(JsonAnswer({})), Members(), &incident);
  EXPECT_EQ(incident.verdicts(0).certainty(), "possible");
  EXPECT_THAT(incident.verdicts(0).evidence(), ElementsAre(HasSubstr("the same number of calls")));
}

// A sum is made of all ranks, named or not.
TEST(RasJoinTest, SumsHaveALimitOfRanks) {
  RasFinding finding;
  finding.communicator = 1;
  finding.counts = {{5, 65535, {}}, {4, 1, {RasRank()}}};
  finding.counts[1].named[0].rank = 0;
  size_t left_out = 0;
  EXPECT_THAT(SumUp(std::vector<RasFinding>(4, finding), &left_out), SizeIs(1));
  EXPECT_EQ(left_out, 0u);
  EXPECT_THAT(SumUp(std::vector<RasFinding>(1000, finding), &left_out), IsEmpty());
  EXPECT_EQ(left_out, 1u) << "the communicator is left out, and no more is counted";
}

// Rank 2 has made a Broadcast where the others have made an AllReduce, and no rank is behind.
TEST(RasJoinTest, SeveralOperationsAreSummedUp) {
  std::vector<std::string> ranks;
  for (int rank = 0; rank < 4; ++rank) {
    const bool differs = rank == 2;
    ranks.push_back(JsonRank({rank,
                              rank < 2 ? "10.0.0.1" : "10.0.0.2",
                              100 + rank,
                              {{"AllReduce", differs ? 5 : 6}, {"Broadcast", differs ? 1 : 0}}}));
  }
  const std::string text = JsonAnswer({JsonCommunicator("a91f", ranks)});
  EXPECT_THAT(SumUp(ReadRasJson(text)), IsEmpty());
  v1::Incident incident = ByStacks(10, "likely");
  JoinRas(Answer(text), Members(), &incident);
  EXPECT_EQ(incident.verdicts(0).certainty(), "likely");
  EXPECT_THAT(incident.verdicts(0).evidence(), SizeIs(2));
}

TEST(RasJoinTest, AnAnswerOfAnotherJobIsLeftOut) {
  v1::Incident incident = ByStacks(12, "likely");
  JoinRas(Answer(OneRankBehind()), {{12, "node-1", 5, 0}}, &incident);
  EXPECT_EQ(incident.verdicts(0).certainty(), "likely");
  EXPECT_THAT(incident.verdicts(0).missing_evidence(),
              ElementsAre(HasSubstr("none of the job's processes")));
}

// No communicator is that of the whole job, so nothing distinguishes the hosts.
TEST(RasJoinTest, ProcessesThatTwoHostsHaveAreNotPlaced) {
  const std::vector<RasMember> members = {
      {4, "node-1", 100, 0}, {5, "node-1", 101, 0}, {6, "node-2", 100, 0}, {7, "node-2", 101, 0}};
  std::vector<RasFinding> findings = ReadRasJson(OneRankBehind());
  EXPECT_EQ(PlaceRasRanks(members, ReadRasMembers(OneRankBehind()), &findings), 0u);
}

// Pods: each has the processes 100 and 101. The ranks distinguish them.
TEST(RasJoinTest, RanksOfAWholeJobTellAlikeHostsApart) {
  std::vector<std::string> ranks;
  for (int rank = 0; rank < 4; ++rank) {
    ranks.push_back(JsonRank({rank,
                              rank < 2 ? "10.0.0.1" : "10.0.0.2",
                              100 + rank % 2,
                              {{"AllReduce", rank == 2 ? 4 : 5}}}));
  }
  const std::string text = JsonAnswer({JsonCommunicator("a91f", ranks)});
  const std::vector<RasMember> members = {
      {2, "pod-b", 100, 0}, {3, "pod-b", 101, 0}, {0, "pod-a", 100, 0}, {1, "pod-a", 101, 0}};
  std::vector<RasFinding> findings = ReadRasJson(text);
  EXPECT_EQ(PlaceRasRanks(members, ReadRasMembers(text), &findings), 4u);
  v1::Incident incident = ByStacks(2);
  JoinRas(Answer(text), members, &incident);
  EXPECT_EQ(incident.verdicts(0).certainty(), "likely");
  EXPECT_THAT(incident.verdicts(0).evidence(), Contains(HasSubstr("process 100 on pod-b")));
}

// The look at the pod of ranks 2 and 3 is missing: its processes are not those of the other pod.
TEST(RasJoinTest, AHostWithoutALookIsNotAnotherHost) {
  std::vector<std::string> ranks;
  for (int rank = 0; rank < 4; ++rank) {
    ranks.push_back(JsonRank({rank,
                              rank < 2 ? "10.0.0.1" : "10.0.0.2",
                              100 + rank % 2,
                              {{"AllReduce", rank == 2 ? 4 : 5}}}));
  }
  const std::string text = JsonAnswer({JsonCommunicator("a91f", ranks)});
  std::vector<RasFinding> findings = ReadRasJson(text);
  EXPECT_EQ(
      PlaceRasRanks({{0, "pod-a", 100, 0}, {1, "pod-a", 101, 0}}, ReadRasMembers(text), &findings),
      0u);
}

TEST(RasJoinTest, TheReasonWhyThereIsNoAnswerIsReported) {
  v1::RasAnswer answer;
  answer.set_error("nobody listens");
  v1::Incident incident = ByStacks(12);
  JoinRas(answer, Members(), &incident);
  EXPECT_THAT(incident.verdicts(0).missing_evidence(), ElementsAre("NCCL's RAS: nobody listens"));
  v1::Incident none;
  JoinRas(answer, Members(), &none);
  EXPECT_THAT(none.verdicts(), IsEmpty());
}

TEST(RasJoinTest, TextOfOlderReleasesIsRead) {
  v1::Incident incident = ByStacks(12);
  JoinRas(Answer("NCCL version 2.26.2 compiled with CUDA 12.6\n\nJob summary\n===========\n\n"
                 "Communicators... (0.00s)\n=============\n\n"
                 "#0-0 (a91f) MISMATCH\n"
                 "  Communicator ranks have different AllReduce operation counts\n"
                 "  3 ranks have launched up to operation 8812\n"
                 "  Rank 2 has launched up to operation 8811 -- GPU 0 managed by process 102 on "
                 "node 10.0.0.2\n"),
          Members(), &incident);
  EXPECT_THAT(incident.verdicts(0).evidence(), Contains(HasSubstr("process 7002 on node-2")));
}

TEST(RasJoinTest, RubbishIsReportedAndHarmless) {
  for (const char* text : {"rubbish", "{\"nccl_version\": [[[", "#0-0 (zz) MISMATCH\n"}) {
    v1::Incident incident = ByStacks(12, "likely");
    JoinRas(Answer(text), Members(), &incident);
    EXPECT_EQ(incident.verdicts(0).certainty(), "likely") << text;
  }
}

}  // namespace
}  // namespace rollcall
