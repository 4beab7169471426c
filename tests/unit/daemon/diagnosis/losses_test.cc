// SPDX-License-Identifier: Apache-2.0
// Calls that the library could not record, and their effect on the verdict.
#include "daemon/diagnosis/losses.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "daemon/diagnosis/diagnose.h"
#include "daemon/diagnosis/versions.h"
#include "job_builder.h"

namespace rollcall {
namespace {

// Ranks 0 to 2 wait in a call that rank 3 has not entered.
JobBuilder OneIsMissing() {
  JobBuilder job(4);
  job.Finish(24);
  job.Enter({0, 1, 2}, At(10));
  return job;
}

// Ranks 0 to 2 are inside the creation of a communicator of four, which rank 3 has not joined.
JobBuilder OneHasNotJoined() {
  JobBuilder job(4);
  for (int rank = 0; rank < 4; ++rank) job.Initializing(rank, At(10));
  job.comm().members.erase(3);
  return job;
}

Verdict Judge(const JobBuilder& job) {
  const std::vector<Verdict> verdicts = Diagnose(job.state, At(100), Limits());
  EXPECT_EQ(verdicts.size(), 1u);
  return verdicts.empty() ? Verdict() : verdicts.front();
}

bool Names(const Verdict& verdict, const std::string& missing) {
  return std::find(verdict.missing_evidence.begin(), verdict.missing_evidence.end(), missing) !=
         verdict.missing_evidence.end();
}

TEST(LossesTest, WithoutLossesThereIsNoMissingEvidence) {
  const Verdict verdict = Judge(OneIsMissing());
  EXPECT_EQ(verdict.certainty, Certainty::kCertain);
  EXPECT_TRUE(verdict.missing_evidence.empty());
}

TEST(LossesTest, EachKindOfLossIsMissingEvidence) {
  JobBuilder job = OneIsMissing();
  job.state.processes[0].lost_communicators = 2;
  job.state.processes[1].unknown_comm_calls = 7;
  job.state.processes[2].lost_threads = 1;
  job.state.processes[3].lost_graph_calls = 4;
  const Verdict verdict = Judge(job);
  EXPECT_TRUE(Names(verdict, "Rollcall had no room to record some communicators of rank 0"));
  EXPECT_TRUE(Names(verdict, "Rollcall did not see the creation of some communicators of rank 1"));
  EXPECT_TRUE(Names(verdict, "Rollcall does not see the current calls of some threads of rank 2"));
  EXPECT_TRUE(Names(verdict, "Rollcall cannot follow the launches of some CUDA graphs of rank 3"));
}

TEST(LossesTest, SaysWhoseStacksAreSwitchedOff) {
  JobBuilder job = OneIsMissing();
  job.state.processes[0].stacks_off = "ROLLCALL_STACKS=off";  // waits: its stacks prove nothing
  job.state.processes[3].stacks_off = "ROLLCALL_STACKS=off";
  const Verdict verdict = Judge(job);
  EXPECT_EQ(
      verdict.missing_evidence,
      std::vector<std::string>{"the stacks of rank 3 are switched off (ROLLCALL_STACKS=off)"});
  EXPECT_EQ(verdict.certainty, Certainty::kCertain) << "the records show that it is missing";
}

TEST(LossesTest, AnEndedRankHasNoStacksAnyway) {
  JobBuilder job = OneIsMissing();
  job.state.processes[3].stacks_off = "ROLLCALL_STACKS=off";
  job.state.processes[3].liveness = Liveness::kDied;
  job.state.processes[3].exit_signal = 9;
  job.state.processes[3].ended_ns = At(20);
  EXPECT_FALSE(Names(Judge(job), "the stacks of rank 3 are switched off (ROLLCALL_STACKS=off)"));
}

TEST(LossesTest, NamesTheLoss) {
  JobBuilder job = OneIsMissing();
  job.state.processes[3].left_out = segment::kLeftOutRings | segment::kLeftOutCommunicators;
  const Verdict verdict = Judge(job);
  EXPECT_EQ(verdict.missing_evidence.size(), 1u);
  EXPECT_TRUE(
      Names(verdict, "Rollcall had no room to record the calls on some communicators of rank 3"));
}

TEST(LossesTest, NamesShortRingsOnlyIfARecordIsMissing) {
  JobBuilder job = OneIsMissing();
  job.state.processes[1].left_out = segment::kLeftOutRecords;
  EXPECT_TRUE(Judge(job).missing_evidence.empty());
  job.LoseRecordsBefore(100);
  EXPECT_TRUE(Names(Judge(job), "Rollcall had room for only the newest calls of rank 1"));
}

TEST(LossesTest, NamesTransfersWithoutRoomWhereACallStandsStillInFlight) {
  const char kLine[] =
      "Rollcall had no room to record what the transfers over the network wait for of rank 2";
  JobBuilder job(4);
  job.Finish(24);
  job.Enter({0, 1, 2, 3}, At(10));
  job.state.processes[2].left_out = segment::kLeftOutNetwork;
  const Verdict verdict = Judge(job);
  EXPECT_EQ(verdict.cause, Cause::kStalledInFlight);
  EXPECT_TRUE(Names(verdict, kLine));
  JobBuilder absent = OneIsMissing();
  absent.state.processes[2].left_out = segment::kLeftOutNetwork;
  EXPECT_TRUE(Judge(absent).missing_evidence.empty())
      << "an absent rank holds nothing up in flight";
}

TEST(LossesTest, AVerdictOnTheEndOfAProcessMissesNoRecords) {
  JobBuilder job = OneIsMissing();
  job.Die(3, At(11));
  job.state.processes[0].lost_communicators = 1;
  const Verdict verdict = Judge(job);
  EXPECT_EQ(verdict.cause, Cause::kRankDied);
  EXPECT_EQ(verdict.certainty, Certainty::kCertain);
  EXPECT_TRUE(verdict.missing_evidence.empty());
}

TEST(LossesTest, LossesOfWaitingRanksDoNotLowerTheCertainty) {
  JobBuilder job = OneIsMissing();
  job.state.processes[0].lost_communicators = 1;
  EXPECT_EQ(Judge(job).certainty, Certainty::kCertain);
}

TEST(LossesTest, LostGraphLaunchesLowerTheCertainty) {
  JobBuilder job = OneIsMissing();
  job.state.processes[3].lost_graph_calls = 1;
  EXPECT_EQ(Judge(job).certainty, Certainty::kLikely);
}

// The rank may be inside a communicator that the library had no room to record.
TEST(LossesTest, ARankThatMayHaveJoinedUnrecordedIsPossibleAtMost) {
  const Certainty before = Judge(OneHasNotJoined()).certainty;
  EXPECT_GT(before, Certainty::kPossible);
  for (uint64_t ProcessEvidence::* loss :
       {&ProcessEvidence::lost_communicators, &ProcessEvidence::unknown_comm_calls}) {
    JobBuilder job = OneHasNotJoined();
    job.state.processes[3].*loss = 1;
    EXPECT_EQ(Judge(job).certainty, Certainty::kPossible);
  }
}

TEST(LossesTest, LossesHaveNoEffectOnARecordedMember) {
  JobBuilder job = OneIsMissing();
  job.state.processes[3].lost_communicators = 1;
  EXPECT_EQ(Judge(job).certainty, Certainty::kCertain);
}

TEST(VersionsTest, RanksAreListedByVersion) {
  JobBuilder job(4);
  for (Process& process : job.state.processes) {
    process.nccl_version = 22703;
    process.library_version = "0.1.0";
  }
  job.state.processes[3].nccl_version = 22602;
  const std::vector<VersionInUse> versions = VersionsInUse(job.state);
  ASSERT_EQ(versions.size(), 3u);
  EXPECT_EQ(versions[0].component + " " + versions[0].version, "NCCL 2.26.2");
  EXPECT_EQ(versions[0].ranks, std::vector<int32_t>{3});
  EXPECT_EQ(versions[1].component + " " + versions[1].version, "NCCL 2.27.3");
  EXPECT_EQ(versions[2].component + " " + versions[2].version, "librollcall 0.1.0");
  EXPECT_EQ(versions[2].ranks.size(), 4u);
}

TEST(VersionsTest, UsesTheNewestProcessOfARestartedRank) {
  JobBuilder job(1);
  Process former = job.state.processes[0];
  former.nccl_version = 22602;
  former.liveness = Liveness::kDied;
  former.ended_ns = At(5);
  job.state.processes[0].nccl_version = 22703;
  job.state.processes.push_back(former);
  ASSERT_EQ(VersionsInUse(job.state).size(), 1u);
  EXPECT_EQ(VersionsInUse(job.state)[0].version, "2.27.3");
}

TEST(VersionsTest, OldVersionCodesHaveFewerDigits) {
  JobBuilder job(1);
  job.state.processes[0].nccl_version = 2804;
  ASSERT_EQ(VersionsInUse(job.state).size(), 1u);
  EXPECT_EQ(VersionsInUse(job.state)[0].version, "2.8.4");
}

TEST(VersionsTest, LeavesOutUnknownVersions) {
  EXPECT_TRUE(VersionsInUse(JobBuilder(2).state).empty());
}

}  // namespace
}  // namespace rollcall
