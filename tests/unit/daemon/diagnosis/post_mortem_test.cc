// SPDX-License-Identifier: Apache-2.0
// The rank that failed first in a job that its launcher has ended.
#include "daemon/diagnosis/post_mortem.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <set>
#include <string>
#include <vector>

#include "job_builder.h"

namespace rollcall {
namespace {

// Ranks 0-2 have waited in call 24 since second 10; rank 3 has not entered it.
JobBuilder Waiting() {
  JobBuilder job(4);
  job.Finish(24);
  job.Enter({0, 1, 2}, At(10));
  return job;
}

void EndOthers(JobBuilder* job, double at) {
  for (const int rank : {0, 1, 2}) job->Die(rank, At(at), SIGTERM);
}

std::vector<Verdict> Judge(const JobBuilder& job) {
  std::set<uint64_t> judged;
  return JudgeTheEnd(job.state, &judged);
}

void ExpectBlamed(const std::vector<Verdict>& verdicts, Cause cause) {
  ASSERT_EQ(verdicts.size(), 1u);
  EXPECT_EQ(verdicts[0].cause, cause);
  ASSERT_EQ(verdicts[0].culprits.size(), 1u);
  EXPECT_EQ(verdicts[0].culprits[0].rank, 3);
  EXPECT_EQ(verdicts[0].waiting_ranks, (std::vector<int32_t>{0, 1, 2}));
  EXPECT_EQ(verdicts[0].position, 24u);
  EXPECT_TRUE(verdicts[0].at_once);
}

TEST(PostMortemTest, BlamesTheRankThatWasKilledFirst) {
  JobBuilder job = Waiting();
  job.Die(3, At(10.5), SIGKILL);
  EndOthers(&job, 10.7);
  const std::vector<Verdict> verdicts = Judge(job);
  ExpectBlamed(verdicts, Cause::kRankDied);
  EXPECT_EQ(verdicts[0].waited_ns, 700'000'000);
  EXPECT_EQ(verdicts[0].evidence.back(),
            "rank 3 failed first, 0.2 s before the next rank ended: later failures are "
            "consequences");
}

TEST(PostMortemTest, AnEndWithUnknownStatusIsNotAFailure) {
  JobBuilder job = Waiting();
  job.EndUnseen(3, At(10.5));
  EndOthers(&job, 10.7);
  EXPECT_TRUE(Judge(job).empty());
}

TEST(PostMortemTest, PrefersASignalOfItsOwnAmongRanksThatEndedTogether) {
  JobBuilder job = Waiting();
  job.Die(3, At(10.5), SIGSEGV);
  EndOthers(&job, 10.5);
  ExpectBlamed(Judge(job), Cause::kRankDied);
}

TEST(PostMortemTest, ExcusesKilledRanksAmongRanksThatEndedTogether) {
  JobBuilder job = Waiting();
  job.Exit(3, At(10.5));
  job.process(3).exit_code = 7;
  for (const int rank : {0, 1, 2}) job.Die(rank, At(10.5), SIGKILL);
  const std::vector<Verdict> verdicts = Judge(job);
  ExpectBlamed(verdicts, Cause::kRankExited);
  EXPECT_EQ(verdicts[0].certainty, Certainty::kLikely);
  ASSERT_EQ(verdicts[0].missing_evidence.size(), 1u);
  EXPECT_EQ(verdicts[0].missing_evidence[0],
            "ranks 0-2 were killed at the same time as the culprit ended: probably by the "
            "launcher, which killed most ranks");
}

TEST(PostMortemTest, ExcusesAKilledRankWhoseLauncherKillsTheOtherRanksLater) {
  JobBuilder job = Waiting();
  job.Die(3, At(10.5), SIGABRT);
  job.Die(0, At(10.5), SIGKILL);
  for (const int rank : {1, 2}) job.Die(rank, At(10.6), SIGKILL);
  const std::vector<Verdict> verdicts = Judge(job);
  ExpectBlamed(verdicts, Cause::kRankDied);
  EXPECT_EQ(verdicts[0].certainty, Certainty::kLikely);
}

TEST(PostMortemTest, BlamesASingleKilledRankAlthoughAnotherRankFailed) {
  JobBuilder job = Waiting();
  job.Die(3, At(10.5), SIGKILL);  // because of lack of memory
  job.Exit(0, At(10.5));          // because of the loss of rank 3
  job.process(0).exit_code = 1;
  for (const int rank : {1, 2}) job.Die(rank, At(10.5), SIGTERM);
  const std::vector<Verdict> verdicts = Judge(job);
  ASSERT_FALSE(verdicts.empty());
  ASSERT_EQ(verdicts[0].culprits.size(), 1u);
  EXPECT_EQ(verdicts[0].culprits[0].rank, 3);
  EXPECT_EQ(verdicts[0].cause, Cause::kRankDied);
}

TEST(PostMortemTest, TakesTheTimeOfTheFailureFromTheException) {
  JobBuilder job = Waiting();
  job.Exit(3, At(10.9));
  job.process(3).error = "ValueError: no at train.py:5";
  job.process(3).error_ns = At(10.4);
  EndOthers(&job, 10.8);
  const std::vector<Verdict> verdicts = Judge(job);
  ExpectBlamed(verdicts, Cause::kRankExited);
  EXPECT_EQ(verdicts[0].culprits[0].error, "ValueError: no at train.py:5");
}

TEST(PostMortemTest, AnExitCodeIsAFailure) {
  JobBuilder job = Waiting();
  job.Exit(3, At(10.5));
  job.process(3).exit_code = 3;
  EndOthers(&job, 10.7);
  ExpectBlamed(Judge(job), Cause::kRankExited);
}

TEST(PostMortemTest, ANormalEndIsNotAFailure) {
  JobBuilder job = Waiting();
  job.Exit(3, At(10.5));
  job.process(3).exit_code = 0;
  EndOthers(&job, 10.7);
  EXPECT_TRUE(Judge(job).empty());
}

// As on gloo, whose calls throw when a rank of theirs has gone: the exception ends the call.
JobBuilder WaitingForOneThatEndedWell(const std::string& error) {
  JobBuilder job = Waiting();
  for (const int rank : {0, 1, 2}) {
    job.member(rank).finished = job.member(rank).entered;
    job.member(rank).waiting_since_ns = 0;
    job.member(rank).is_over = true;
    job.member(rank).state = MemberState::kDestroyed;
  }
  job.Exit(3, At(10.5));
  job.process(3).exit_code = 0;
  for (const int rank : {0, 1, 2}) {
    job.Exit(rank, At(10.9));
    job.process(rank).exit_code = 1;
    job.process(rank).error = error;
    job.process(rank).error_ns = At(10.1);
  }
  return job;
}

TEST(PostMortemTest, BlamesTheRankWhoseNormalEndBrokeTheCallsOfTheOthers) {
  const std::vector<Verdict> verdicts = Judge(WaitingForOneThatEndedWell(
      "RuntimeError: [pair.cc:553] Connection closed by peer [127.0.0.1]:7 at train.py:5"));
  ExpectBlamed(verdicts, Cause::kRankExited);
  EXPECT_EQ(verdicts[0].evidence.back(),
            "the exceptions of the other ranks report that a peer is gone: rank 3 ended before");
}

TEST(PostMortemTest, ANormalEndIsNotTheReasonForAnotherException) {
  EXPECT_TRUE(Judge(WaitingForOneThatEndedWell("ValueError: no at train.py:5")).empty());
}

TEST(PostMortemTest, OneExceptionOfItsOwnIsAReasonForTheOthers) {
  JobBuilder job = WaitingForOneThatEndedWell("RuntimeError: Connection reset by peer");
  job.process(1).error = "ValueError: no at train.py:5";
  EXPECT_TRUE(Judge(job).empty());
}

// The agent misses the killed rank at its next look; the exceptions of the others have their times.
// gloo ends their calls with the exception.
TEST(PostMortemTest, BlamesAKilledRankAlthoughTheOthersFailedBeforeItsEndWasSeen) {
  for (const bool was_in_the_call : {false, true}) {
    JobBuilder job = Waiting();
    if (was_in_the_call) job.Enter({3}, At(10));
    job.Complete({0, 1, 2});
    for (const int rank : {0, 1, 2}) {
      job.Exit(rank, At(11));
      job.process(rank).exit_code = 1;
      job.process(rank).error = "RuntimeError: [pair.cc:534] Connection closed by peer [::1]:9";
      job.process(rank).error_ns = At(10.2 + 0.1 * rank);
      job.process(rank).ended_after_ns = At(10);
    }
    job.Die(3, At(11));
    job.process(3).ended_after_ns = At(10);
    ExpectBlamed(Judge(job), Cause::kRankDied);
  }
}

// It lost the connection to a server of its own, before the call that the others made.
TEST(PostMortemTest, ARankThatLostAnotherConnectionFailedFirst) {
  JobBuilder job = Waiting();
  job.Exit(3, At(10.5));
  job.process(3).exit_code = 1;
  job.process(3).error = "ConnectionResetError: Connection reset by peer at data.py:5";
  job.process(3).error_ns = At(10.4);
  for (const int rank : {0, 1, 2}) {
    job.Exit(rank, At(10.9));
    job.process(rank).exit_code = 0;
  }
  ExpectBlamed(Judge(job), Cause::kRankExited);
}

// It has handled the exception of the others' end.
TEST(PostMortemTest, ARankThatWasInTheCallTooIsNotTheReason) {
  JobBuilder job = WaitingForOneThatEndedWell("RuntimeError: Connection reset by peer");
  job.Enter({3}, At(10));
  EXPECT_TRUE(Judge(job).empty());
}

TEST(PostMortemTest, AJobThatAPersonEndsHasNoFailure) {
  JobBuilder job = Waiting();
  job.Die(3, At(10.5), SIGTERM);
  EndOthers(&job, 10.7);
  EXPECT_TRUE(Judge(job).empty());
}

TEST(PostMortemTest, DoesNotBlameARankThatHandlesTheSignal) {
  JobBuilder job = Waiting();
  job.Exit(3, At(10.5));
  job.process(3).exit_code = 128 + SIGINT;
  EndOthers(&job, 10.7);
  EXPECT_TRUE(Judge(job).empty());
}

TEST(PostMortemTest, FindsNothingIfAllRanksAreKilledAtOnce) {
  JobBuilder job = Waiting();
  for (const int rank : {0, 1, 2, 3}) job.Die(rank, At(10.5), SIGKILL);
  EXPECT_TRUE(Judge(job).empty());
}

TEST(PostMortemTest, AFailureAfterTheEndOfAnotherRankIsNotTheCause) {
  JobBuilder job = Waiting();
  EndOthers(&job, 10.5);
  job.Die(3, At(10.7), SIGABRT);
  EXPECT_TRUE(Judge(job).empty());
}

TEST(PostMortemTest, FindsNothingIfNoRankWaited) {
  JobBuilder job(4);
  job.Finish(24);
  job.Die(3, At(10.5), SIGKILL);
  EndOthers(&job, 10.7);
  EXPECT_TRUE(Judge(job).empty());
}

TEST(PostMortemTest, JudgesNothingWhileARankLives) {
  JobBuilder job = Waiting();
  job.Die(3, At(10.5), SIGKILL);
  for (const int rank : {0, 1}) job.Die(rank, At(10.7), SIGTERM);
  std::set<uint64_t> judged;
  EXPECT_TRUE(JudgeTheEnd(job.state, &judged).empty());
  EXPECT_TRUE(judged.empty());
  job.Die(2, At(10.8), SIGTERM);
  ExpectBlamed(JudgeTheEnd(job.state, &judged), Cause::kRankDied);
  EXPECT_TRUE(JudgeTheEnd(job.state, &judged).empty());  // once
}

TEST(PostMortemTest, BlamesARankThatDiedBeforeItJoined) {
  JobBuilder job(4);
  for (const int rank : {0, 1, 2}) job.Initializing(rank, At(10));
  job.process(3).has_segment = false;
  job.Die(3, At(10.5), SIGKILL);
  job.comm().members.erase(3);
  EndOthers(&job, 10.7);
  const std::vector<Verdict> verdicts = Judge(job);
  ASSERT_EQ(verdicts.size(), 1u);
  EXPECT_EQ(verdicts[0].cause, Cause::kRankDied);
  ASSERT_EQ(verdicts[0].culprits.size(), 1u);
  EXPECT_EQ(verdicts[0].culprits[0].pid, 4003);
}

// Each agent looks every second, so a rank that died first may be reported later.
void DieBetweenLooks(int rank, double from, int signal, JobBuilder* job) {
  job->Die(rank, At(from + 1), signal);
  job->process(rank).ended_after_ns = At(from);
}

TEST(PostMortemTest, LowersCertaintyIfAnotherHostMayHaveFailedFirst) {
  for (const bool may_be_first : {true, false}) {
    JobBuilder job = Waiting();
    DieBetweenLooks(3, 10, SIGKILL, &job);
    DieBetweenLooks(0, may_be_first ? 10.5 : 11, SIGABRT, &job);
    for (const int rank : {1, 2}) job.Die(rank, At(12.5), SIGTERM);
    const std::vector<Verdict> verdicts = Judge(job);
    ASSERT_EQ(verdicts.size(), 1u);
    EXPECT_EQ(verdicts[0].culprits[0].rank, 3);
    EXPECT_EQ(verdicts[0].certainty, may_be_first ? Certainty::kLikely : Certainty::kCertain);
    EXPECT_EQ(
        verdicts[0].missing_evidence,
        may_be_first
            ? std::vector<
                  std::
                      string>{"rank 0 ended between the same two looks of the agents: the order is "
                              "unknown"}
            : std::vector<std::string>());
  }
}

// The launcher ends the other ranks at once, and their agents look earlier.
TEST(PostMortemTest, BlamesTheRankThatFailedFirstThoughItsAgentLooksLast) {
  JobBuilder job = Waiting();
  DieBetweenLooks(3, 10, SIGKILL, &job);
  for (const int rank : {0, 1, 2}) DieBetweenLooks(rank, 9.5, SIGTERM, &job);
  const std::vector<Verdict> verdicts = Judge(job);
  ASSERT_EQ(verdicts.size(), 1u);
  EXPECT_EQ(verdicts[0].culprits[0].rank, 3);
  EXPECT_EQ(verdicts[0].certainty, Certainty::kLikely);
}

TEST(PostMortemTest, JudgesEachAttemptOfARestartedJobByItself) {
  JobBuilder job = Waiting();
  job.Die(3, At(10.5), SIGKILL);
  EndOthers(&job, 10.7);
  std::set<uint64_t> judged;
  ASSERT_FALSE(JudgeTheEnd(job.state, &judged).empty());

  constexpr uint64_t kSecondLife = kDp + 1;
  for (int rank = 0; rank < 4; ++rank) {
    Process again = job.state.processes[static_cast<size_t>(rank)];
    again.pid += 100;
    again.liveness = Liveness::kAlive;
    again.exit_signal = 0;
    job.state.processes.push_back(again);
  }
  job.AddCommunicator(kSecondLife, "dp", {4, 5, 6, 7});
  job.Enter({0, 2, 3}, At(20));
  EXPECT_TRUE(JudgeTheEnd(job.state, &judged).empty());
  job.Die(1, At(21), SIGBUS);
  for (const int rank : {0, 2, 3}) job.Die(rank, At(21.2), SIGTERM);
  const std::vector<Verdict> verdicts = JudgeTheEnd(job.state, &judged);
  ASSERT_EQ(verdicts.size(), 1u);
  EXPECT_EQ(verdicts[0].culprits[0].pid, 4101);
}

}  // namespace
}  // namespace rollcall
