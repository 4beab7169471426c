// SPDX-License-Identifier: Apache-2.0
// The cost of a verdict with very many culprits, also of a few ranks that claim to be many, and the
// length of what it says.
#include <gtest/gtest.h>
#include <time.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

#include "daemon/diagnosis/diagnose.h"
#include "daemon/diagnosis/life/incident_life.h"
#include "daemon/rules/stuck_call.h"
#include "daemon/words/sentences.h"
#include "job_builder.h"
#include "large_job.h"

namespace rollcall {
namespace {

using large_job::Fault;

constexpr size_t kLongestSentence = 1000;  // bytes
constexpr size_t kMostLines = 64;

// The CPU time of this thread does not depend on the load of the machine.
double CpuSeconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}

// The least CPU time of three diagnoses, each with the opening of the incident.
double CostOfDiagnosis(Fault fault, int32_t ranks) {
  const JobState job = large_job::MakeJob(fault, ranks);
  double least = 1e9;
  for (int round = 0; round < 3; ++round) {
    const double begin = CpuSeconds();
    IncidentLife life("large");
    life.Update(job, Diagnose(job, large_job::kNow, Limits()), large_job::kNow, Limits());
    least = std::min(least, CpuSeconds() - begin);
  }
  return least;
}

class LargeVerdictTest : public testing::TestWithParam<size_t> {
 protected:
  Fault fault() const { return large_job::kFaults[GetParam()].fault; }
};

TEST_P(LargeVerdictTest, CostsInProportionToTheRanks) {
  constexpr int32_t kFew = 1000, kTimesMore = 16;
  const double few = CostOfDiagnosis(fault(), kFew);
  const double many = CostOfDiagnosis(fault(), kFew * kTimesMore);
  // Work in proportion to the square of the ranks would be 256 times as long.
  EXPECT_LT(many, few * kTimesMore * 4) << few << " s, " << many << " s";
}

TEST_P(LargeVerdictTest, NamesAHandfulInItsSentences) {
  const JobState job = large_job::MakeJob(fault(), 4000);
  const std::vector<Verdict> verdicts = Diagnose(job, large_job::kNow, Limits());
  ASSERT_FALSE(verdicts.empty());
  for (const Verdict& v : verdicts) {
    EXPECT_LT(v.summary.size(), kLongestSentence) << v.summary.substr(0, kLongestSentence);
    EXPECT_LT(v.stack_words.size(), 100'000u);
    for (const auto* lines : {&v.evidence, &v.missing_evidence}) {
      EXPECT_LT(lines->size(), kMostLines);
      for (const std::string& line : *lines) {
        EXPECT_LT(line.size(), kLongestSentence) << line.substr(0, kLongestSentence);
      }
    }
  }
}

// A communicator that claims as many ranks as the rules accept. One has reported, and waits in a
// call or in the creation.
void MakeClaim(MemberState state, JobBuilder* job) {
  Member member = job->member(0);
  member.state = state;
  member.init_entered_ns = At(0);
  job->comm().size = kMaxRanks;
  job->comm().members = RankTable<Member>();
  job->comm().members[kMaxRanks / 2] = member;
  if (state == MemberState::kReady) job->Enter({kMaxRanks / 2}, At(0));
  for (Process& process : job->state.processes) process.world_size = kMaxRanks;
}

JobState MakeClaim(MemberState state) {
  JobBuilder job(2);
  MakeClaim(state, &job);
  job.state.processes.pop_back();
  return job.state;
}

TEST(ClaimedRanksTest, AStuckCallHoldsRangesOfRanksWithoutAReport) {
  for (const MemberState state : {MemberState::kReady, MemberState::kInitializing}) {
    const JobState job = MakeClaim(state);
    RankFinder finder(job);
    const std::vector<StuckCall> calls = FindStuckCalls(job, job.communicators.at(kDp), &finder);
    ASSERT_EQ(calls.size(), 1u);
    ASSERT_EQ(calls[0].absents.size(), 2u);
    EXPECT_EQ(calls[0].absents[0].ranks, kMaxRanks / 2);
    EXPECT_EQ(calls[0].absents[1].rank, kMaxRanks / 2 + 1);
    EXPECT_EQ(calls[0].absents[1].ranks, kMaxRanks / 2 - 1);
  }
}

TEST(ClaimedRanksTest, AVerdictCountsAllCulpritsAndHoldsRanges) {
  for (const MemberState state : {MemberState::kReady, MemberState::kInitializing}) {
    const auto verdicts = Diagnose(MakeClaim(state), At(100), Limits());
    ASSERT_EQ(verdicts.size(), 1u);
    EXPECT_EQ(verdicts[0].culprits.size(), 2u);
    EXPECT_EQ(CountCulprits(verdicts[0].culprits), static_cast<size_t>(kMaxRanks - 1));
    EXPECT_EQ(verdicts[0].summary.rfind("ranks 0-131071,131073-262143 of the communicator", 0), 0u)
        << verdicts[0].summary;
  }
}

TEST(ClaimedRanksTest, AChainOfWaitsHoldsRanges) {
  JobBuilder job(2);
  MakeClaim(MemberState::kReady, &job);
  job.AddCommunicator(kDp + 1, "pp", {0, 1});
  job.Enter({1}, At(1));  // waits for the process that waits in the communicator with the claim
  const auto verdicts = Diagnose(job.state, At(100), Limits());
  ASSERT_EQ(verdicts.size(), 2u);
  ASSERT_EQ(verdicts[1].chain.size(), 2u);
  EXPECT_EQ(verdicts[1].chain[1].to.size(), 2u);
  EXPECT_EQ(EdgeInWords(verdicts[1].chain[1]),
            "rank 0 waits in AllReduce #0 on communicator \"dp\" for ranks 0-131071,131073-262143");
}

TEST(ClaimedRanksTest, AJobThatHasNotStartedHoldsRangesOfRanksWithoutAProcess) {
  JobBuilder job(2);
  job.state.communicators.clear();
  for (size_t i = 0; i < 2; ++i) {
    Process& process = job.state.processes[i];
    process.has_segment = false;
    process.world_size = kMaxRanks;
    process.waits_outside_since_ns = At(0);
    process.stack_words = "wait_for_workers";
    process.stacks_ns = At(99);
  }
  const auto verdicts = Diagnose(job.state, At(100), Limits());
  ASSERT_EQ(verdicts.size(), 1u);
  ASSERT_EQ(verdicts[0].culprits.size(), 1u);
  EXPECT_EQ(verdicts[0].culprits[0].rank, 2);
  EXPECT_EQ(verdicts[0].culprits[0].ranks, kMaxRanks - 2);
}

std::string FaultName(const testing::TestParamInfo<size_t>& info) {
  std::string name = large_job::kFaults[info.param].name;
  std::replace(name.begin(), name.end(), ' ', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Faults, LargeVerdictTest,
                         testing::Range<size_t>(0, std::size(large_job::kFaults)), FaultName);

}  // namespace
}  // namespace rollcall
