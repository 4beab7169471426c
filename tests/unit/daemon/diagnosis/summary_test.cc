// SPDX-License-Identifier: Apache-2.0
// The sentence leads with the culprits' lines whatever the cause, and ends with the step.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "daemon/diagnosis/diagnose.h"
#include "daemon/words/sentences.h"
#include "job_builder.h"
#include "large_job.h"

namespace rollcall {
namespace {

using large_job::Fault;

Verdict First(const JobState& state, int64_t now_ns = At(70)) {
  const std::vector<Verdict> verdicts = Diagnose(state, now_ns, Limits());
  EXPECT_FALSE(verdicts.empty());
  return verdicts.empty() ? Verdict() : verdicts[0];
}

// The newest stacks of a rank, taken during the wait.
void Stands(int rank, const std::string& line, JobBuilder* job, const std::string& inside = "") {
  job->process(rank).place = {line, inside, true, " f "};
  job->process(rank).stacks_ns = At(30);
}

// The line that made the newest call of a rank on the communicator.
void Called(int rank, const std::string& line, JobBuilder* job) {
  std::vector<std::string>& sites = job->process(rank).sites;
  sites.push_back(line);
  job->member(rank).records.back().site = static_cast<uint16_t>(sites.size());
}

// Rank 0 waits on "a" for rank 1, which waits on "b" for rank 0.
JobBuilder Circle() {
  JobBuilder job(2);
  job.AddCommunicator(2, "b", {0, 1});
  job.Enter({1}, At(11));
  job.AddCommunicator(1, "a", {0, 1});
  job.Enter({0}, At(10));
  return job;
}

constexpr char kCircle[] =
    "ranks 0-1 wait for each other: rank 0 waits in AllReduce #0 on communicator \"a\" for rank 1, "
    "and rank 1 waits in AllReduce #0 on communicator \"b\" for rank 0; 2 ranks have waited 60 s";

TEST(SummaryTest, ADeadlockLeadsWithTheLinesOfItsRanks) {
  JobBuilder job = Circle();
  Stands(0, "/x/train.py:31 in forward", &job);
  Stands(1, "/x/train.py:57 in backward", &job, "Work.wait");
  EXPECT_EQ(First(job.state).summary,
            std::string("rank 0 is in `forward` (train.py:31), rank 1 is in `backward` "
                        "(train.py:57), waiting in Work.wait: ") +
                kCircle);
}

TEST(SummaryTest, RanksAtOneLineAreNamedOnce) {
  JobBuilder job = Circle();
  for (const int rank : {0, 1}) Stands(rank, "/x/train.py:31 in forward", &job);
  EXPECT_EQ(First(job.state).summary,
            std::string("ranks 0-1 are in `forward` (train.py:31): ") + kCircle);
}

TEST(SummaryTest, WithoutStacksTheLinesOfTheCallsLead) {
  JobBuilder job = Circle();
  Called(0, "/x/train.py:31 in forward", &job);
  job.On(2);
  Called(1, "/x/train.py:57 in backward", &job);
  const Verdict v = First(job.state);
  EXPECT_EQ(v.summary,
            std::string("rank 0 made its call in `forward` (train.py:31), rank 1 made its "
                        "call in `backward` (train.py:57): ") +
                kCircle);
  EXPECT_EQ(v.culprits[0].site, "/x/train.py:31 in forward");
}

TEST(SummaryTest, WithoutALineNothingLeads) { EXPECT_EQ(First(Circle().state).summary, kCircle); }

// The communicators number their ranks in different ways.
TEST(SummaryTest, WithoutNumbersInTheJobRanksAreNotTakenForOthers) {
  JobBuilder job(2);
  for (Process& process : job.state.processes) process.global_rank = -1;
  job.AddCommunicator(2, "b", {1, 0});
  job.Enter({0}, At(11));  // process 1 waits for process 0
  Called(0, "/x/train.py:57 in backward", &job);
  job.AddCommunicator(1, "a", {0, 1});
  job.Enter({0}, At(10));
  Called(0, "/x/train.py:31 in forward", &job);
  const Verdict v = First(job.state);
  EXPECT_EQ(v.cause, Cause::kDeadlock);
  EXPECT_NE(v.summary.find(" wait for each other: "), std::string::npos) << v.summary;
  EXPECT_EQ(v.summary.find("train.py"), std::string::npos) << v.summary;
}

TEST(SummaryTest, ABlockedGpuLeadsWithTheLineOfItsRank) {
  JobBuilder job(4);
  job.Finish(24);
  job.Enter({0, 1, 2, 3}, At(10));
  job.member(3).started = 24;
  Stands(3, "/x/train.py:31 in forward", &job, "Event.synchronize");
  const Verdict v = First(job.state);
  EXPECT_EQ(v.cause, Cause::kBlockedBeforeStart);
  EXPECT_EQ(
      v.summary.rfind("rank 3 is in `forward` (train.py:31), waiting in Event.synchronize: all "
                      "ranks have entered AllReduce #24 on communicator \"dp\", but the GPU of "
                      "rank 3 (node-3, pid 4003) has not started the call",
                      0),
      0u)
      << v.summary;
}

JobBuilder WithAnError() {
  JobBuilder job(4);
  job.Finish(24);
  job.Enter({0, 1, 2, 3}, At(10));
  job.member(2).async_error = 1;
  return job;
}

TEST(SummaryTest, AnErrorOfNcclLeadsWithTheLine) {
  JobBuilder job = WithAnError();
  Stands(2, "/x/train.py:31 in forward", &job);
  EXPECT_EQ(
      First(job.state).summary,
      "rank 2 is in `forward` (train.py:31): NCCL reported ncclUnhandledCudaError on rank 2 "
      "(node-2, pid 4002) in or before AllReduce #24 on communicator \"dp\"; 4 ranks have waited "
      "60 s");
}

// A broadcast from a rank that does not exist. NCCL's words are in the exception that ended the
// rank.
TEST(SummaryTest, ARefusedCallLeadsWithItsLineAndEndsWithTheExceptionsText) {
  JobBuilder job(4);
  job.Finish(24);
  job.Enter({0, 1, 2}, At(10));
  Called(3, "/x/train.py:12 in forward", &job);
  CallRecord refused = job.member(3).records.back();
  ++refused.index;
  refused.position = 24;
  refused.args = Broadcast(8, 11);
  refused.result = 4;
  refused.entered_ns = refused.returned_ns = At(10);
  job.member(3).records.push_back(refused);
  Called(3, "/x/train.py:31 in share", &job);
  job.process(3).error = "DistBackendError: invalid root 11 (4 ranks) at train.py:31";
  job.process(3).error_ns = At(11);
  const Verdict v = First(job.state);
  EXPECT_EQ(v.cause, Cause::kNcclError);
  EXPECT_EQ(
      v.summary,
      "rank 3 made its call in `share` (train.py:31): NCCL reported ncclInvalidArgument "
      "(Broadcast root 11 of 4 ranks) on rank 3 (node-3, pid 4003) in or before AllReduce #24 on "
      "communicator \"dp\", and rank 3 failed with \"DistBackendError: invalid root 11 (4 ranks) "
      "at train.py:31\"; 3 ranks have waited 60 s");
}

TEST(SummaryTest, TwoThreadsLeadWithTheLine) {
  JobBuilder job(4);
  job.Finish(24);
  job.Enter({0, 1, 2, 3}, At(10));
  CallRecord& last = job.member(1).records.back();
  CallRecord& before = job.member(1).records[23];
  before.thread = 2;
  before.returned_ns = last.entered_ns + 1;
  job.member(1).concurrent_use = true;
  Called(1, "/x/train.py:31 in prefetch", &job);
  EXPECT_EQ(
      First(job.state).summary.rfind("rank 1 made its last call in `prefetch` (train.py:31): two "
                                     "threads of rank 1 (node-1, pid 4001) were inside calls",
                                     0),
      0u)
      << First(job.state).summary;
  Stands(1, "/x/train.py:33 in drain", &job);
  EXPECT_EQ(First(job.state).summary.rfind("rank 1 is in `drain` (train.py:33): two threads of", 0),
            0u)
      << First(job.state).summary;
}

TEST(SummaryTest, AStoppedProcessIsTheHeadlineOfAStalledCall) {
  JobBuilder job(4);
  job.Finish(24);
  job.Enter({0, 1, 2, 3}, At(10));
  job.process(1).state = 'T';
  Stands(1, "/x/train.py:31 in forward", &job);
  const Verdict v = First(job.state);
  EXPECT_EQ(v.cause, Cause::kStalledInFlight);
  EXPECT_EQ(v.certainty, Certainty::kLikely);
  EXPECT_EQ(
      v.summary,
      "rank 1 (node-1, pid 4001) is stopped by a signal (state T) and keeps the others waiting "
      "in AllReduce #24 on communicator \"dp\"; 3 ranks have waited 60 s");
  EXPECT_EQ(v.advice.front().id, "stopped-process");
  EXPECT_EQ(v.advice.size(), 1u) << "nothing shows a fault of the network";
}

TEST(SummaryTest, AFrozenProcessIsTheHeadlineOfAMissingRank) {
  JobBuilder job(4);
  job.Finish(24);
  job.Enter({0, 1, 2}, At(10));
  job.process(3).wait_channel = "do_freezer_trap";
  Stands(3, "/x/train.py:31 in forward", &job);
  const Verdict v = First(job.state);
  EXPECT_EQ(v.certainty, Certainty::kLikely);
  EXPECT_EQ(v.summary,
            "rank 3 (node-3, pid 4003) is frozen by its control group and has not called AllReduce "
            "#24 on communicator \"dp\"; 3 ranks have waited 60 s");
}

TEST(SummaryTest, AStoppedProcessIsTheHeadlineOfAContradiction) {
  JobBuilder job(4);
  job.Finish(24);
  job.Enter({0, 1, 2}, At(10));
  job.Enter({3}, At(10), Broadcast());
  job.process(3).state = 't';
  const Verdict v = First(job.state);
  EXPECT_EQ(v.cause, Cause::kOperationMismatch);
  EXPECT_EQ(v.certainty, Certainty::kCertain) << "the calls differ whoever runs";
  EXPECT_EQ(v.summary.rfind("rank 3 (node-3, pid 4003) is stopped by a debugger (state t)", 0), 0u)
      << v.summary;
}

TEST(SummaryTest, ATieLeadsWithTheLinesOfBothSides) {
  JobBuilder job(2);
  job.Enter({0}, At(10), AllReduce(8));
  job.Enter({1}, At(10), Broadcast());
  Called(0, "/x/train.py:31 in step", &job);
  Stands(1, "/x/train.py:57 in evaluate", &job);
  EXPECT_EQ(
      First(job.state).summary,
      "rank 0 made its call in `step` (train.py:31), rank 1 is in `evaluate` (train.py:57): rank "
      "0 (node-0, pid 4000) called AllReduce(float32 x 8, sum) where rank 1 (node-1, pid 4001) "
      "called Broadcast(float32 x 128, root 0): call #0 on communicator \"dp\"; 2 ranks have "
      "waited 60 s");
}

TEST(SummaryTest, ATieOfManyRanksIsNotCutInAClause) {
  JobBuilder job(64);
  for (int rank = 0; rank < 64; ++rank) {
    const bool is_even = rank % 2 == 0;
    job.Enter({rank}, At(10), is_even ? AllReduce(8) : Broadcast());
    Stands(rank,
           is_even ? "/x/train_model.py:31 in run_one_step_of_training"
                   : "/x/train_model.py:157 in evaluate_on_all_batches",
           &job);
  }
  const std::string summary = First(job.state).summary;
  EXPECT_LE(summary.size(), kLongestSentence);
  EXPECT_EQ(summary.find("..."), std::string::npos) << summary;
  for (const char* part :
       {"are in `run_one_step_of_training` (train_model.py:31)",
        "are in `evaluate_on_all_batches` (train_model.py:157)", " more (32 hosts) called",
        "called AllReduce(float32 x 8, sum) where ranks 1,3", "; 64 ranks have waited 60 s"}) {
    EXPECT_NE(summary.find(part), std::string::npos) << part << "\n" << summary;
  }
}

TEST(SummaryTest, AMinorityLeadsWithItsLineOnce) {
  JobBuilder job(4);
  job.Enter({0, 1, 2}, At(10));
  job.Enter({3}, At(10), Broadcast());
  Called(3, "/x/train.py:31 in share", &job);
  EXPECT_EQ(First(job.state).summary.rfind("rank 3 made its call in `share` (train.py:31): rank 3 "
                                           "(node-3, pid 4003) called Broadcast",
                                           0),
            0u)
      << First(job.state).summary;
  Stands(3, "/x/train.py:57 in evaluate", &job);
  EXPECT_EQ(
      First(job.state).summary.rfind("rank 3 (node-3, pid 4003) is in `evaluate` (train.py:57) and "
                                     "called Broadcast",
                                     0),
      0u)
      << First(job.state).summary;
}

TEST(SummaryTest, EndsOfDifferentSizeLeadWithBothLines) {
  JobBuilder job(2);
  job.Issue(0, Send(1, 64), At(10));
  Called(0, "/x/pipe.py:31 in push", &job);
  job.Issue(1, Recv(0, 32), At(10));
  Called(1, "/x/pipe.py:57 in pull", &job);
  EXPECT_EQ(First(job.state).summary.rfind(
                "rank 0 made its call in `push` (pipe.py:31), rank 1 made its "
                "call in `pull` (pipe.py:57): rank 0 (node-0, pid 4000) called "
                "Send(",
                0),
            0u)
      << First(job.state).summary;
}

TEST(SummaryTest, AnAbsentRankHasNoLineOfTheCall) {
  JobBuilder job(4);
  job.Finish(24);
  Called(3, "/x/train.py:31 in step", &job);
  job.Enter({0, 1, 2}, At(10));
  EXPECT_EQ(First(job.state).summary.rfind("rank 3 (node-3, pid 4003) has not called", 0), 0u);
}

TEST(SummaryTest, ALearnedStepIsNamedWithItsPeriod) {
  JobBuilder job(4);
  for (int step = 0; step < 20; ++step) {
    for (const uint64_t count : {100, 200, 300}) job.Finish(1, AllReduce(count));
  }
  job.Enter({0, 1, 2}, At(10), AllReduce(100));
  EXPECT_EQ(
      First(job.state).summary,
      "rank 3 (node-3, pid 4003) has not called AllReduce #60 on communicator \"dp\"; 3 ranks have "
      "waited 60 s in step 20 (of period 3 calls)");
  for (const int rank : {0, 1, 2, 3}) job.process(rank).step = 812;
  EXPECT_EQ(First(job.state).summary.find("period"), std::string::npos);
}

TEST(SummaryTest, WhereNoRoomIsLeftThePeriodIsLeftOut) {
  JobBuilder job(4);
  job.comm().name = std::string(255, 'c');
  for (int step = 0; step < 20; ++step) {
    for (const uint64_t count : {100, 200, 300}) job.Finish(1, AllReduce(count));
  }
  job.Enter({0, 1, 2}, At(10), AllReduce(100));
  const std::string name(200, 'f');
  Stands(3, "/x/" + name + ".py:3 in " + name, &job, name);
  job.process(3).host = std::string(64, 'h');
  const std::string summary = First(job.state).summary;
  EXPECT_LE(summary.size(), kLongestSentence);
  EXPECT_NE(summary.find("3 ranks have waited 60 s in step 20"), std::string::npos) << summary;
}

// 12,000 culprits with long names, each of which stands at a line of its own.
TEST(SummaryTest, NoSentenceIsLong) {
  const std::string name(200, 'f');
  for (const Fault fault : {Fault::kAllErrors, Fault::kAllDiffer}) {
    JobState job = large_job::MakeJob(fault, 12'000);
    job.communicators.at(1).name = std::string(255, 'c');
    for (Process& process : job.processes) {
      process.host += std::string(200, 'h');
      process.sites = {"/x/" + name + ".py:5 in " + name};
      if (process.global_rank % 3 == 0) continue;
      process.place = {"/x/" + name + ".py:" + std::to_string(process.global_rank) + " in " + name,
                       name, true, " f "};
      process.stacks_ns = large_job::kNow;
    }
    const Verdict v = First(job, large_job::kNow);
    EXPECT_EQ(v.culprits.size(), 12'000u);
    EXPECT_LE(v.summary.size(), kLongestSentence) << v.summary;
    EXPECT_NE(v.summary.find("`fff"), std::string::npos) << v.summary;
    EXPECT_NE(v.summary.find("12000 ranks have waited 100 s in step"), std::string::npos)
        << v.summary;
    // What has happened still follows the lines.
    EXPECT_TRUE(v.summary.find("NCCL reported") != std::string::npos ||
                v.summary.find("which does not finish") != std::string::npos ||
                v.summary.find(" called AllReduce") != std::string::npos)
        << v.summary;
  }
}

}  // namespace
}  // namespace rollcall
