// SPDX-License-Identifier: Apache-2.0
// Jobs that stand still outside of recorded calls, by what samples of their stacks show: when there
// is an incident, and which ranks are its culprits.
#include "daemon/diagnosis/standing/standstill.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "daemon/diagnosis/diagnose.h"
#include "standing_job.h"

namespace rollcall {
namespace {

TEST(StandstillTest, BlamesTheRankThatTheOthersWaitFor) {
  const StandingJob job({Reads(4001), kQueue, Reads(4000)});
  const Verdict verdict = job.Only();
  EXPECT_EQ(verdict.cause, Cause::kStandstill);
  EXPECT_EQ(verdict.certainty, Certainty::kLikely);
  EXPECT_EQ(CulpritsOf(verdict), Ranks{1});
  EXPECT_EQ(verdict.waiting_ranks, (Ranks{0, 2}));
  EXPECT_EQ(verdict.summary,
            "rank 1 (node, pid 4001) is in `load` (train.py:9) and waits in a queue of its own "
            "threads, and ranks 0,2 wait for it, in a socket: no rank moves; 2 ranks have waited "
            "50 s");
  EXPECT_EQ(verdict.advice.front().id, "waits-for-a-thread");
}

TEST(StandstillTest, BlamesRanksThatWaitForEachOther) {
  const Verdict verdict = StandingJob({Reads(4002), Reads(4000, "/x/train.py:8 in send"),
                                       Reads(4000, "/x/train.py:9 in send")})
                              .Only();
  EXPECT_EQ(CulpritsOf(verdict), (Ranks{0, 2}));
  EXPECT_EQ(verdict.standstill.shape, StandShape::kRing);
  EXPECT_EQ(verdict.advice.front().id, "ask-the-other-end");
}

// It waits until all have come, and those that have come wait for its answer.
TEST(StandstillTest, BlamesTheRankInTheMiddleOfARing) {
  RankPlaceOf hub = {" epoll_wait selectors.EpollSelector.select train.greet ",
                     "/x/train.py:77 in greet",
                     {4001, 4002},
                     EndKind::kSocket};
  const Verdict verdict = StandingJob({hub, Reads(4000), Reads(4000)}).Only();
  EXPECT_EQ(CulpritsOf(verdict), Ranks{0});
  EXPECT_EQ(verdict.advice.front().id, "lacking-party");
}

TEST(StandstillTest, BlamesTheRankThatStandsElsewhere) {
  const RankPlaceOf barrier = {" pthread_barrier_wait main ", "/x/b.c:52 in main"};
  const RankPlaceOf batch = {" pthread_cond_wait TakeBatch main ", "/x/b.c:40 in TakeBatch"};
  EXPECT_EQ(CulpritsOf(StandingJob({barrier, barrier, batch}).Only()), Ranks{2});
  // Of two, the one that waits for no other rank else.
  EXPECT_EQ(CulpritsOf(StandingJob({batch, barrier}).Only()), Ranks{0});
}

TEST(StandstillTest, EachRankForWhichOneWaitsIsNamed) {
  StandingJob job({{" epoll_wait selectors.EpollSelector.select train.collect ",
                    "/x/train.py:7 in collect",
                    {4001, 4002},
                    EndKind::kSocket},
                   {" __lll_lock_wait pthread_mutex_lock train.a ", "/x/train.py:5 in a"},
                   kQueue});
  EXPECT_EQ(CulpritsOf(job.Only()), (Ranks{1, 2}));
}

TEST(StandstillTest, TellsWhereAllWaitInOnePlace) {
  const RankPlaceOf semaphore = {" __new_sem_wait_slow64 TakeTurn main ", "/x/s.c:20 in TakeTurn"};
  const Verdict verdict = StandingJob({semaphore, semaphore, semaphore}).Only();
  EXPECT_TRUE(verdict.culprits.empty());
  EXPECT_EQ(verdict.certainty, Certainty::kPossible);
  EXPECT_EQ(verdict.summary,
            "all 3 ranks stand in `TakeTurn` (s.c:20), and wait in a lock or a semaphore: no rank "
            "moves; 3 ranks have waited 50 s");
}

// Two containers may have the same host name, and their processes the same number.
TEST(StandstillTest, TwoRanksWithOneNumberAreTwo) {
  StandingJob job({Reads(4002), Reads(4002), kQueue});
  job.state.processes[1].pid = job.state.processes[0].pid;
  job.state.processes[1].start_time += 1;
  EXPECT_EQ(CulpritsOf(job.Only()), Ranks{2});
}

TEST(StandstillTest, ARankInTheKernelWaitsForAFileSystem) {
  StandingJob job({Reads(4001), {" openat train.save ", "/x/train.py:31 in save"}, Reads(4000)});
  job.standings[1]->state = 'D';
  const Verdict verdict = job.Only();
  EXPECT_EQ(CulpritsOf(verdict), Ranks{1});
  EXPECT_THAT(verdict.summary, testing::HasSubstr("a file system that does not answer"));
}

TEST(StandstillTest, SaysThatACulpritIsInAHandlerOfASignal) {
  const RankPlaceOf handler = {
      " PyThread_acquire_lock_timed train.write train.<lambda> PyErr_CheckSignals time.sleep "
      "train.write ",
      "/x/train.py:40 in write"};
  const Verdict verdict = StandingJob({Reads(4001), handler, Reads(4001)}).Only();
  EXPECT_EQ(CulpritsOf(verdict), Ranks{1});
  EXPECT_THAT(verdict.summary, testing::HasSubstr("waits in a lock, in a handler of a signal"));
  EXPECT_EQ(verdict.advice.front().id, "signal-handler");
}

TEST(StandstillTest, ARankThatSleepsMayWake) {
  const RankPlaceOf sleeps = {" clock_nanosleep time.sleep train.rest ", "/x/train.py:9 in rest"};
  const RankPlaceOf reads = {" __recv train.receive ", "/x/train.py:42 in receive"};
  const Verdict verdict = StandingJob({sleeps, reads, reads}).Only();
  EXPECT_EQ(CulpritsOf(verdict), Ranks{0});
  EXPECT_EQ(verdict.certainty, Certainty::kPossible);
}

TEST(StandstillTest, RanksThatAllSleepGoOnByThemselvesAtWhateverLine) {
  const RankPlaceOf rests = {" clock_nanosleep sleep Nonblocking main ", "/x/job.c:197 in Work"};
  StandingJob job(
      {rests, rests, {" clock_nanosleep sleep Nonblocking main ", "/x/job.c:195 in Rest"}});
  EXPECT_TRUE(job.Judge().empty());
}

TEST(StandstillTest, UnseenRanksMayWork) {
  StandingJob job({Reads(4001), kQueue, Reads(4000)});
  for (Process& process : job.state.processes) process.world_size = 8;
  EXPECT_EQ(job.Only().certainty, Certainty::kPossible);
}

TEST(StandstillTest, AThreadThatWaitsForItsGpuIsWork) {
  StandingJob job({Reads(4001), kQueue, Reads(4000)});
  job.standings[1]->threads = {
      {5000, "compute",
       PlaceOf({" cudaStreamSynchronize train.compute ", "/x/train.py:8 in compute"})}};
  EXPECT_TRUE(job.Judge().empty());
}

// No incident, whatever the ranks wait in.
TEST(StandstillTest, LeavesAloneWhatMayGoOn) {
  const RankPlaceOf ring = {" clock_nanosleep q.Ring.acquire_read engine.run ",
                            "/x/q.py:43 in Ring.acquire_read"};
  const RankPlaceOf prompt = {" read PyOS_Readline builtin_input train.ask ", "/x/t.py:3 in ask"};
  const RankPlaceOf gpu = {" poll cuStreamSynchronize train.step ", "/x/t.py:3 in step"};
  const RankPlaceOf sleeps = {" clock_nanosleep train.pause ", "/x/t.py:9 in pause"};
  const std::pair<const char*, std::vector<RankPlaceOf>> jobs[] = {
      {"workers without work", {ring, ring, ring}},
      {"readers of one server", {kServes, Reads(4000), Reads(4000)}},
      {"a person", {Reads(4001), prompt}},
      {"a GPU", {Reads(4001), gpu}},
      {"all sleep", {sleeps, sleeps}},
      {"one rank", {kQueue}},
      {"readers of a process of which nothing is known", {Reads(812), Reads(812)}},
  };
  for (const auto& [name, places] : jobs) EXPECT_TRUE(StandingJob(places).Judge().empty()) << name;
}

TEST(StandstillTest, WaitsUntilAllHaveStoodForLong) {
  using Change = void (*)(StandingJob*);
  const std::pair<const char*, Change> changes[] = {
      {"a rank moves", [](StandingJob* job) { job->standings[2]->since_ns = At(55); }},
      {"a rank rests", [](StandingJob* job) { job->standings[2]->rests = true; }},
      {"an old sample", [](StandingJob* job) { job->standings[2]->newest_ns = At(20); }},
      {"no sample", [](StandingJob* job) { job->state.processes[2].standing = nullptr; }},
      {"stopped", [](StandingJob* job) { job->state.processes[2].state = 'T'; }},
      {"in a debugger", [](StandingJob* job) { job->state.processes[2].traced = true; }},
  };
  for (const auto& [name, change] : changes) {
    StandingJob job({Reads(4001), kQueue, Reads(4000)});
    change(&job);
    EXPECT_TRUE(job.Judge().empty()) << name;
  }
}

// One that MPI has spawned has a rank of its own.
TEST(StandstillTest, AnotherProcessWithTheNumberOfARankMayWork) {
  StandingJob job({Reads(4001), kQueue, Reads(4000)});
  Process spawned = job.state.processes[0];
  spawned.pid = 4400;
  spawned.start_time += 1;
  spawned.standing = nullptr;
  spawned.quiet_since_ns = At(5);
  job.state.processes.push_back(spawned);
  EXPECT_FALSE(job.Judge().empty());
  job.state.processes.back().quiet_since_ns = At(60);
  EXPECT_TRUE(job.Judge().empty());
  // It uses little of the CPU, but moves.
  job.state.processes.back().quiet_since_ns = At(5);
  auto moves = std::make_shared<Standing>();
  moves->since_ns = At(59);
  job.state.processes.back().standing = moves;
  EXPECT_TRUE(job.Judge().empty());
  // It sleeps in a loop: it may compute a little each time.
  auto sleeps = std::make_shared<Standing>();
  sleeps->since_ns = At(10);
  sleeps->place = PlaceOf({" clock_nanosleep time.sleep train.main ", "/x/train.py:9 in main"});
  job.state.processes.back().standing = sleeps;
  EXPECT_TRUE(job.Judge().empty());
}

TEST(StandstillTest, TheWatchOnCallsOnlyJudgesNone) {
  const StandingJob job({Reads(4001), kQueue, Reads(4000)});
  Limits limits;
  limits.watches_calls_only = true;
  EXPECT_TRUE(Diagnose(job.state, At(61), limits).empty());
}

}  // namespace
}  // namespace rollcall
