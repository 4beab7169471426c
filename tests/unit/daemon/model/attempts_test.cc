// SPDX-License-Identifier: Apache-2.0
// Which attempt of its job a process belongs to.
#include "daemon/model/attempts.h"

#include <gtest/gtest.h>

#include <limits>

#include "base/durations.h"
#include "daemon/model/attempt_room.h"

namespace rollcall {
namespace {

ProcessStart Rank(int32_t rank, int32_t pid, int64_t started_s) {
  ProcessStart start;
  start.process = {"node-1", pid, static_cast<uint64_t>(pid)};
  start.rank = rank;
  start.world_size = 4;
  start.uses_nccl = true;
  start.started_ns = started_s * kSecond;
  return start;
}

// Four ranks that began at that second, with pids from `first_pid` on. Returns their attempts.
std::vector<int32_t> StartAll(int32_t first_pid, int64_t started_s, Attempts* attempts) {
  std::vector<int32_t> placed;
  for (int32_t rank = 0; rank < 4; ++rank) {
    placed.push_back(attempts->Place(Rank(rank, first_pid + rank, started_s)));
  }
  return placed;
}

void EndAll(int32_t first_pid, int64_t ended_s, Attempts* attempts) {
  for (int32_t pid = first_pid; pid < first_pid + 4; ++pid) {
    attempts->SetEnded({"node-1", pid, static_cast<uint64_t>(pid)}, 0, ended_s * kSecond);
  }
}

using All = std::vector<int32_t>;

TEST(AttemptsTest, ProcessesOfOneStartAreOneAttempt) {
  Attempts attempts;
  EXPECT_EQ(StartAll(100, 10, &attempts), All({0, 0, 0, 0}));
  EXPECT_EQ(StartAll(100, 10, &attempts), All({0, 0, 0, 0}));
}

TEST(AttemptsTest, ProcessesThatTakeTheRanksOfEndedOnesAreANewAttempt) {
  Attempts attempts;
  StartAll(100, 10, &attempts);
  EndAll(100, 50, &attempts);
  EXPECT_EQ(StartAll(200, 60, &attempts), All({1, 1, 1, 1}));
  EndAll(200, 90, &attempts);
  EXPECT_EQ(StartAll(300, 100, &attempts), All({2, 2, 2, 2}));
  EXPECT_EQ(attempts.newest(), 2);
}

TEST(AttemptsTest, ARankThatStartsWhileOthersStillEndIsANewAttempt) {
  Attempts attempts;
  StartAll(100, 10, &attempts);
  attempts.SetEnded({"node-1", 100, 100}, 0, 50 * kSecond);
  EXPECT_EQ(attempts.Place(Rank(0, 200, 51)), 1);
  attempts.SetEnded({"node-1", 101, 101}, 0, 52 * kSecond);
  EXPECT_EQ(attempts.Place(Rank(1, 201, 53)), 1);
  EXPECT_EQ(attempts.Place(Rank(3, 103, 10)), 0);
}

// The agent saw one rank of a short job, and no call of that rank.
TEST(AttemptsTest, BeginsAnAttemptForAStartAfterAShortOne) {
  Attempts attempts;
  ProcessStart brief = Rank(2, 102, 10);
  brief.uses_nccl = false;
  EXPECT_EQ(attempts.Place(brief), 0);
  attempts.SetEnded(brief.process, 0, 11 * kSecond);
  for (int32_t rank = 0; rank < 4; ++rank) {
    ProcessStart next = Rank(rank, 200 + rank, 11);
    next.started_ns += kSecond / 5;
    EXPECT_EQ(attempts.Place(next), 1) << rank;
  }
}

TEST(AttemptsTest, AStartOnAnotherHostRightAfterTheEndMayBelongToIt) {
  Attempts attempts;
  const ProcessStart first = Rank(2, 102, 10);
  attempts.Place(first);
  attempts.SetEnded(first.process, 0, 11 * kSecond);
  ProcessStart next = Rank(0, 200, 11);
  next.process.host = "node-2";
  next.started_ns += kSecond / 5;
  EXPECT_EQ(attempts.Place(next), 0) << "the clocks of two hosts differ";
}

TEST(AttemptsTest, ALateRankOfAFailingLaunchKeepsTheAttempt) {
  Attempts attempts;
  ProcessStart first = Rank(0, 100, 10), late = Rank(3, 103, 40);
  first.launch = late.launch = "node-1:29500";
  EXPECT_EQ(attempts.Place(first), 0);
  attempts.SetEnded(first.process, 0, 20 * kSecond);
  EXPECT_EQ(attempts.Place(late), 0);
}

// The second `torchrun` on a host has the address and the port of the first one.
ProcessStart RankAtOneAddress(int32_t rank, int32_t pid, int64_t started_s) {
  ProcessStart start = Rank(rank, pid, started_s);
  start.launch = "1000 127.0.0.1:29500@node-1";
  return start;
}

TEST(AttemptsTest, ASecondStartAtOneAddressIsANewAttempt) {
  Attempts attempts;
  for (int32_t rank = 0; rank < 4; ++rank) attempts.Place(RankAtOneAddress(rank, 100 + rank, 10));
  EndAll(100, 50, &attempts);
  for (int32_t rank = 0; rank < 4; ++rank) {
    EXPECT_EQ(attempts.Place(RankAtOneAddress(rank, 200 + rank, 60)), 1) << rank;
  }
}

TEST(AttemptsTest, BeginsAnAttemptForASecondStartAtOneAddress) {
  Attempts attempts;
  for (int32_t rank = 0; rank < 4; ++rank) {
    ProcessStart first = RankAtOneAddress(rank, 100 + rank, 10);
    first.uses_nccl = false;
    attempts.Place(first);
  }
  EndAll(100, 12, &attempts);
  for (int32_t rank = 0; rank < 4; ++rank) {
    EXPECT_EQ(attempts.Place(RankAtOneAddress(rank, 200 + rank, 20)), 1) << rank;
  }
}

TEST(AttemptsTest, ARankWithoutAProcessIsLateForAShortTimeOnly) {
  for (const bool is_late : {true, false}) {
    Attempts attempts;
    attempts.Place(RankAtOneAddress(0, 100, 10));
    attempts.SetEnded({"node-1", 100, 100}, 0, 20 * kSecond);
    EXPECT_EQ(attempts.Place(RankAtOneAddress(3, 203, is_late ? 50 : 51)), is_late ? 0 : 1);
  }
}

// The agent sees the end a tick after the next process began.
TEST(AttemptsTest, BeginsAnAttemptForAStartBeforeARanksUnseenEnd) {
  Attempts attempts;
  attempts.Place(RankAtOneAddress(0, 100, 10));
  attempts.SetEnded({"node-1", 100, 100}, 50 * kSecond, 52 * kSecond);
  EXPECT_EQ(attempts.Place(RankAtOneAddress(0, 200, 51)), 1);
}

TEST(AttemptsTest, BeginsAnAttemptForAStartThatProcRoundsDown) {
  Attempts attempts;
  attempts.Place(RankAtOneAddress(0, 100, 10));
  attempts.SetEnded({"node-1", 100, 100}, 51 * kSecond + 9'000'000, 52 * kSecond);
  EXPECT_EQ(attempts.Place(RankAtOneAddress(0, 200, 51)), 1);
}

TEST(AttemptsTest, AChildThatOutlivesItsParentBelongsToItsAttempt) {
  Attempts attempts;
  attempts.Place(RankAtOneAddress(0, 100, 10));
  attempts.SetEnded({"node-1", 100, 100}, 50 * kSecond, 52 * kSecond);
  EXPECT_EQ(attempts.Place(RankAtOneAddress(0, 101, 49)), 0);
}

// It may be a helper of the ended process, or the next start.
TEST(AttemptsTest, DefersAProcessWithoutNcclThatBeginsAtItsRanksEnd) {
  Attempts attempts;
  attempts.Place(RankAtOneAddress(0, 100, 10));
  attempts.SetEnded({"node-1", 100, 100}, 50 * kSecond, 52 * kSecond);
  ProcessStart start = RankAtOneAddress(0, 200, 51);
  start.uses_nccl = false;
  EXPECT_TRUE(attempts.IsTooEarly(start));
  start.started_ns = 52 * kSecond;
  EXPECT_FALSE(attempts.IsTooEarly(start));
  EXPECT_EQ(attempts.Place(start), 1);
}

TEST(AttemptsTest, AnotherCounterOfTheLauncherIsANewAttemptWithItsNumber) {
  Attempts attempts;
  ProcessStart before = Rank(0, 100, 10), after = Rank(1, 200, 11);
  before.attempt = 0;
  before.restarts = "TORCHELASTIC_RESTART_COUNT=0";
  after.attempt = 3;
  after.restarts = "TORCHELASTIC_RESTART_COUNT=3";
  EXPECT_EQ(attempts.Place(before), 0);
  EXPECT_EQ(attempts.Place(after), 3);
}

TEST(AttemptsTest, DefersASecondProcessOfALiveRankUntilItUsesNccl) {
  Attempts attempts;
  StartAll(100, 10, &attempts);
  ProcessStart start = Rank(1, 200, 20);
  start.uses_nccl = false;
  EXPECT_TRUE(attempts.IsTooEarly(start));
  ProcessStart restarted = start;
  restarted.restarts = "SLURM_RESTART_COUNT=1";
  EXPECT_TRUE(attempts.IsTooEarly(restarted)) << "the first start has no counter";
  start.uses_nccl = true;
  EXPECT_FALSE(attempts.IsTooEarly(start));
  EXPECT_EQ(attempts.Place(start), 1);
  ProcessStart other = Rank(2, 300, 30);
  other.uses_nccl = false;
  EndAll(100, 40, &attempts);
  EXPECT_FALSE(attempts.IsTooEarly(other)) << "nobody has the rank now";
}

TEST(AttemptsTest, TheFirstAttemptSeenMayHaveAHighNumber) {
  Attempts attempts;
  ProcessStart start = Rank(0, 100, 10);
  start.attempt = 7;
  EXPECT_EQ(attempts.Place(start), 7);
}

// The number comes from a job's environment.
TEST(AttemptsTest, TheHighestNumberOfALauncherLeavesNumbersForTheNextAttempts) {
  Attempts attempts;
  ProcessStart start = Rank(0, 100, 10);
  start.attempt = std::numeric_limits<int32_t>::max();
  const int32_t first = attempts.Place(start);
  attempts.SetEnded(start.process, 0, 20 * kSecond);
  start.process.pid = 200;
  start.started_ns = 30 * kSecond;
  EXPECT_EQ(attempts.Place(start), first + 1);
}

// torchrun counts from 0 again when a person starts it again.
TEST(AttemptsTest, ALauncherThatCountsFromZeroAgainGetsTheNextNumber) {
  Attempts attempts;
  ProcessStart start = Rank(0, 100, 10);
  start.attempt = 0;
  start.restarts = "TORCHELASTIC_RESTART_COUNT=0";
  EXPECT_EQ(attempts.Place(start), 0);
  attempts.SetEnded(start.process, 0, 20 * kSecond);
  start.process.pid = 200;
  start.started_ns = 30 * kSecond;
  EXPECT_EQ(attempts.Place(start), 1);
}

TEST(AttemptsTest, TwoLiveJobsOfOneNameAreTwoAttempts) {
  Attempts attempts;
  StartAll(100, 10, &attempts);
  EXPECT_EQ(StartAll(200, 20, &attempts), All({1, 1, 1, 1}));
  EXPECT_FALSE(attempts.HasTwin(0));
  EXPECT_TRUE(attempts.HasTwin(1));
}

TEST(AttemptsTest, SeparatesJobsOfOneNameByTheirLaunch) {
  Attempts attempts;
  for (int32_t rank = 0; rank < 4; ++rank) {
    ProcessStart one = Rank(rank, 100 + rank, 10), other = Rank(rank, 200 + rank, 10);
    one.launch = "node-1:29500";
    other.launch = "node-1:29501";
    EXPECT_EQ(attempts.Place(one), 0);
    EXPECT_EQ(attempts.Place(other), 1);
  }
}

TEST(AttemptsTest, AHelperThatInheritsTheRankBelongsToItsParentsAttempt) {
  Attempts attempts;
  StartAll(100, 10, &attempts);
  ProcessStart helper = Rank(2, 500, 20);
  helper.uses_nccl = false;
  EXPECT_EQ(attempts.Place(helper), 0);
  attempts.SetEnded(helper.process, 0, 30 * kSecond);
  helper.process.pid = 501;
  helper.started_ns = 40 * kSecond;
  EXPECT_EQ(attempts.Place(helper), 0);
}

// No agent saw the process on the lost host end, so its rank seems to be alive.
TEST(AttemptsTest, ARankThatComesBackOnAnotherHostIsANewAttempt) {
  Attempts attempts;
  ProcessStart before = Rank(0, 100, 10), after = Rank(0, 100, 60);
  before.launch = after.launch = "node-0:29500";
  after.process.host = "node-2";
  EXPECT_EQ(attempts.Place(before), 0);
  EXPECT_EQ(attempts.Place(after), 1);
}

TEST(AttemptsTest, AChildProcessThatUsesNcclBelongsToItsParentsAttempt) {
  Attempts attempts;
  ProcessStart parent = Rank(0, 100, 10), child = Rank(0, 101, 12);
  parent.launch = child.launch = "node-0:29500";
  EXPECT_EQ(attempts.Place(parent), 0);
  EXPECT_EQ(attempts.Place(child), 0);
}

TEST(AttemptsTest, AProcessKeepsItsAttemptWhenItStartsToUseNccl) {
  Attempts attempts;
  ProcessStart start = Rank(0, 100, 10);
  start.uses_nccl = false;
  EXPECT_EQ(attempts.Place(start), 0);
  start.uses_nccl = true;
  EXPECT_EQ(attempts.Place(start), 0);
  attempts.SetEnded(start.process, 0, 20 * kSecond);
  EXPECT_EQ(attempts.Place(Rank(0, 200, 30)), 1);
}

TEST(AttemptsTest, AnotherWorldSizeAfterTheEndIsANewAttempt) {
  Attempts attempts;
  StartAll(100, 10, &attempts);
  EndAll(100, 50, &attempts);
  ProcessStart ninth = Rank(8, 208, 60);
  ninth.world_size = 16;
  EXPECT_EQ(attempts.Place(ninth), 1);
}

// One of four ranks got another number of them: that is what is wrong with the job.
TEST(AttemptsTest, RanksOfOneLaunchMayHaveDifferentWorldSizes) {
  for (const int32_t told : {3, 5}) {
    for (int32_t wrong = 0; wrong < 3; ++wrong) {
      Attempts attempts;
      for (int32_t rank = 0; rank < 4; ++rank) {
        ProcessStart start = RankAtOneAddress(rank, 100 + rank, 10);
        start.uses_nccl = false;
        if (rank == wrong) start.world_size = told;
        EXPECT_EQ(attempts.Place(start), 0) << told << " " << wrong << " " << rank;
      }
    }
  }
}

TEST(AttemptsTest, JoinsARankBeyondTheSizeIfItBeganWithTheOthers) {
  for (const bool together : {true, false}) {
    Attempts attempts;
    for (int32_t rank = 0; rank < 4; ++rank) attempts.Place(RankAtOneAddress(rank, 100 + rank, 10));
    ProcessStart fifth = RankAtOneAddress(4, 104, together ? 11 : 40);
    fifth.world_size = 5;
    EXPECT_EQ(attempts.Place(fifth), together ? 0 : 1) << "a job that grows starts all ranks again";
  }
}

// A job that lost a host starts its ranks again in a smaller world, before anybody has seen their
// ends.
TEST(AttemptsTest, ARankThatStartsAgainInAnotherWorldIsANewAttempt) {
  Attempts attempts;
  for (int32_t rank = 0; rank < 4; ++rank) {
    ProcessStart start = RankAtOneAddress(rank, 100 + rank, 10);
    start.uses_nccl = false;
    attempts.Place(start);
  }
  for (int32_t rank = 0; rank < 2; ++rank) {
    ProcessStart again = RankAtOneAddress(rank, 200 + rank, 40);
    again.world_size = 2;
    again.uses_nccl = false;
    EXPECT_EQ(attempts.Place(again), 1) << rank;
  }
}

TEST(AttemptsTest, AChildOfARankWithAnotherSizeBelongsToItsParentsAttempt) {
  Attempts attempts;
  for (int32_t rank = 0; rank < 4; ++rank) {
    ProcessStart start = RankAtOneAddress(rank, 100 + rank, 10);
    if (rank == 2) start.world_size = 5;
    attempts.Place(start);
  }
  ProcessStart child = RankAtOneAddress(2, 500, 60);
  child.world_size = 5;
  EXPECT_EQ(attempts.Place(child), 0);
}

TEST(AttemptsTest, TwoJobsOfOneNameWithDifferentSizesAreTwoAttempts) {
  Attempts attempts;
  StartAll(100, 10, &attempts);
  for (int32_t rank = 7; rank >= 0; --rank) {
    ProcessStart other = Rank(rank, 200 + rank, 11);
    other.world_size = 8;
    EXPECT_EQ(attempts.Place(other), 1) << rank;
  }
}

// Whatever their environment says, they are ranks of one communicator.
TEST(AttemptsTest, ProcessesThatJoinOneCommunicatorAreOneAttempt) {
  Attempts attempts;
  for (int32_t rank = 0; rank < 3; ++rank) {
    ProcessStart start = Rank(rank, 100 + rank, 10);
    start.communicators = {77};
    EXPECT_EQ(attempts.Place(start), 0);
  }
  ProcessStart twice = Rank(2, 103, 10), told = Rank(3, 104, 10);
  twice.communicators = told.communicators = {78, 77};
  told.world_size = 5;
  EXPECT_EQ(attempts.Place(twice), 0);
  EXPECT_EQ(attempts.Place(told), 0);
  EXPECT_FALSE(attempts.HasTwin(0));
  ProcessStart other = Rank(2, 203, 10);
  other.communicators = {79};
  EXPECT_EQ(attempts.Place(other), 1) << "another job of this name";
}

TEST(AttemptsTest, ACommunicatorThatAProcessJoinsLaterCountsToo) {
  Attempts attempts;
  attempts.Place(Rank(2, 100, 10));
  attempts.AddCommunicators({"node-1", 100, 100}, {77});
  attempts.AddCommunicators({"node-1", 999, 999}, {78});  // it is unknown
  ProcessStart twice = Rank(2, 101, 10);
  twice.communicators = {77};
  EXPECT_EQ(attempts.Place(twice), 0);
}

TEST(AttemptsTest, ACommunicatorOfAnAttemptThatIsOverIsAnotherOne) {
  Attempts attempts;
  ProcessStart start = Rank(0, 100, 10), next = Rank(0, 200, 60);
  start.communicators = next.communicators = {77};
  attempts.Place(start);
  attempts.SetEnded(start.process, 0, 50 * kSecond);
  EXPECT_EQ(attempts.Place(next), 1);
}

TEST(AttemptsTest, ARankThatTwoProcessesHadMayStartAgain) {
  Attempts attempts;
  ProcessStart one = Rank(2, 100, 10), twice = Rank(2, 101, 10);
  one.communicators = twice.communicators = {77};
  attempts.Place(one);
  attempts.Place(twice);
  attempts.SetEnded(twice.process, 0, 11 * kSecond);
  ProcessStart helper = Rank(2, 102, 20);
  helper.uses_nccl = false;
  EXPECT_EQ(attempts.Place(helper), 0) << "the first of the two lives";
  attempts.SetEnded(one.process, 0, 30 * kSecond);
  EXPECT_EQ(attempts.Place(Rank(2, 200, 40)), 1);
}

// torchft: the other replicas train on, and take the weights to the one that is back.
TEST(AttemptsTest, AReplicaThatStartsAgainWhileOthersLiveBelongsToTheirAttempt) {
  Attempts attempts;
  for (int32_t rank = 0; rank < 4; ++rank) {
    ProcessStart start = Rank(rank, 100 + rank, 10);
    start.may_rejoin = true;
    EXPECT_EQ(attempts.Place(start), 0);
  }
  attempts.SetEnded({"node-1", 103, 103}, 0, 50 * kSecond);
  ProcessStart again = Rank(3, 203, 60);
  again.may_rejoin = true;
  EXPECT_EQ(attempts.Place(again), 0);
  EndAll(100, 70, &attempts);
  attempts.SetEnded({"node-1", 203, 203}, 0, 70 * kSecond);
  ProcessStart next = Rank(3, 303, 80);
  next.may_rejoin = true;
  EXPECT_EQ(attempts.Place(next), 1) << "nobody was left";
}

// A host of the first start was lost, so no agent has seen the end of its rank.
TEST(AttemptsTest, AReplicaOfARequeuedJobIsANewAttempt) {
  Attempts attempts;
  for (int32_t rank = 0; rank < 4; ++rank) {
    ProcessStart start = Rank(rank, 100 + rank, 10);
    start.may_rejoin = true;
    start.restarts = "SLURM_RESTART_COUNT=0";
    attempts.Place(start);
  }
  attempts.SetEnded({"node-1", 103, 103}, 0, 50 * kSecond);
  ProcessStart again = Rank(3, 203, 60);
  again.may_rejoin = true;
  again.restarts = "SLURM_RESTART_COUNT=1";
  EXPECT_EQ(attempts.Place(again), 1);
}

TEST(AttemptsTest, KeepsABoundedNumberOfAttempts) {
  Attempts attempts;
  for (int32_t i = 0; i < 200; ++i) {
    EXPECT_EQ(attempts.Place(Rank(0, 100 + i, 10 * i)), i);
    attempts.SetEnded({"node-1", 100 + i, static_cast<uint64_t>(100 + i)}, 0,
                      (10 * i + 5) * kSecond);
  }
  EXPECT_EQ(attempts.newest(), 199);
}

TEST(AttemptsTest, AForgottenAttemptLeavesTheNumbersOfTheOthers) {
  Attempts attempts;
  StartAll(100, 10, &attempts);
  EndAll(100, 50, &attempts);
  StartAll(200, 60, &attempts);
  attempts.Forget(0);
  EXPECT_EQ(StartAll(200, 60, &attempts), All({1, 1, 1, 1}));
}

// A restarted daemon, with what the earlier one recorded.
Attempts Restarted(const Attempts& before) {
  Attempts after;
  for (const auto& [number, facts] : before.AllFacts()) after.Restore(number, facts);
  return after;
}

// Three starts of four ranks each, of which the last lives. Their pids begin at 100, 200 and 300.
Attempts ThirdStart() {
  Attempts attempts;
  for (const int32_t start : {1, 2, 3}) {
    StartAll(start * 100, start * 100, &attempts);
    if (start != 3) EndAll(start * 100, start * 100 + 50, &attempts);
  }
  return attempts;
}

struct Room {
  const char* name;
  std::vector<HeldAttempt> held;
  int32_t makes_room;
};

TEST(AttemptRoomTest, ForgetsEndedAttemptsFirstThenThoseOfTheHeaviestUser) {
  const Room kRooms[] = {
      {"one", {{0, "1", true}}, 0},
      {"all live", {{0, "1", true}, {1, "1", true}}, 0},
      {"one is over", {{0, "1", true}, {1, "1", false}, {2, "1", false}}, 1},
      {"a stranger has more", {{0, "1", true}, {1, "7", true}, {2, "7", true}}, 1},
      {"the owner has more", {{0, "7", true}, {1, "1", true}, {2, "1", true}}, 1},
      {"as many", {{3, "1", true}, {4, "7", true}}, 3},
      {"nobody knows", {{3, "", true}, {4, "", true}}, 3},
  };
  for (const Room& room : kRooms) EXPECT_EQ(MakesRoom(room.held), room.makes_room) << room.name;
}

TEST(RestoredAttemptsTest, ReturningProcessesBelongToTheirAttempt) {
  Attempts attempts = Restarted(ThirdStart());
  EXPECT_EQ(StartAll(300, 300, &attempts), All({2, 2, 2, 2}));
}

TEST(RestoredAttemptsTest, ProcessesOfTwoLivingAttemptsReturnInAnyOrder) {
  Attempts before;
  StartAll(100, 10, &before);
  EXPECT_EQ(StartAll(200, 20, &before), All({1, 1, 1, 1}));
  Attempts attempts = Restarted(before);
  EXPECT_EQ(StartAll(200, 20, &attempts), All({1, 1, 1, 1}));
  EXPECT_EQ(StartAll(100, 10, &attempts), All({0, 0, 0, 0}));
  EXPECT_TRUE(attempts.HasTwin(1));
  EXPECT_FALSE(attempts.HasTwin(0));
}

TEST(RestoredAttemptsTest, OtherProcessesOfTheRanksAreANewAttempt) {
  Attempts attempts = Restarted(ThirdStart());
  EXPECT_EQ(StartAll(400, 400, &attempts), All({3, 3, 3, 3}));
  EXPECT_FALSE(attempts.HasTwin(3)) << "nobody knows whether attempt 2 is alive";
}

TEST(RestoredAttemptsTest, AStartWithTheLaunchOfAnEndedOneIsANewAttempt) {
  ProcessStart old = Rank(0, 100, 10);
  old.launch = "1000 node-1:29500";
  Attempts before;
  before.Place(old);
  Attempts attempts = Restarted(before);
  ProcessStart start = Rank(0, 200, 60);
  start.launch = old.launch;
  EXPECT_EQ(attempts.Place(start), 1);
}

TEST(RestoredAttemptsTest, AnUnrecordedRankJoinsTheReturningAttempt) {
  Attempts before;
  before.Place(Rank(0, 100, 10));
  before.Place(Rank(1, 101, 10));
  Attempts attempts = Restarted(before);
  EXPECT_EQ(attempts.Place(Rank(3, 103, 10)), 0);
  EXPECT_EQ(attempts.Place(Rank(0, 100, 10)), 0);
}

TEST(RestoredAttemptsTest, ReturnedProcessesEndAsOthersDo) {
  Attempts attempts = Restarted(ThirdStart());
  StartAll(300, 300, &attempts);
  EndAll(300, 350, &attempts);
  EXPECT_EQ(StartAll(400, 400, &attempts), All({3, 3, 3, 3}));
}

TEST(RestoredAttemptsTest, AHelperWaitsUntilItsParentHasReturned) {
  Attempts attempts = Restarted(ThirdStart());
  ProcessStart helper = Rank(0, 310, 310);
  helper.uses_nccl = false;
  EXPECT_TRUE(attempts.IsTooEarly(helper));
}

}  // namespace
}  // namespace rollcall
