// SPDX-License-Identifier: Apache-2.0
// Two jobs that share a communicator: the trainer has its ranks 0 and 1, the engine 2 and 3.
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "daemon/diagnosis/diagnose.h"
#include "daemon/diagnosis/pairs/joined_jobs.h"
#include "daemon/diagnosis/pairs/pair_verdicts.h"
#include "interpose/mpi_world.h"
#include "job_builder.h"

namespace rollcall {
namespace {

constexpr uint64_t kWeights = 0x3e1447500000001;

// A job of two ranks with a communicator "dp" of its own, and its ranks of "weights", which has
// four. Both "dp" have one id, as groups of gloo have.
class HalfOfAPair {
 public:
  HalfOfAPair(const std::string& name, int first) : job(2), first_(first) {
    job.state.key = JobKey(name);
    job.AddCommunicator(kWeights, "weights", {0, 1});
    Communicator& comm = job.comm();
    comm.size = 4;
    comm.kind = CommKind::kGloo;
    for (int rank = 0; rank < 2; ++rank) {
      Member& m = comm.members[rank];
      m.init_entered_ns = At(first + rank);
      m.state_since_ns = At(9);
    }
    for (int rank = 0; rank < 2; ++rank) {
      job.process(rank).pid += 100 * first;
      job.process(rank).uid = 1000;
    }
    if (first != 0) Move();
  }

  // The ranks of "weights" count in the whole.
  void EnterWeights(const std::vector<int>& ranks, int64_t at) {
    job.On(kWeights);
    job.Enter(ranks, at, Broadcast());
  }
  void Work(int calls) {
    for (const int rank : {first_, first_ + 1}) job.Finish({rank}, calls, Broadcast());
  }
  JobState& state() { return job.state; }
  Communicator& weights() { return job.state.communicators.at(kWeights); }

  JobBuilder job;

 private:
  void Move() {
    Communicator& comm = weights();
    for (int rank = 1; rank >= 0; --rank) {
      comm.members[rank + first_] = comm.members[rank];
      comm.members.erase(rank);
    }
  }

  const int first_;
};

class PairsTest : public testing::Test {
 protected:
  PairsTest() {
    trainer_.Work(5);
    engine_.Work(5);
  }
  // What one of them reports of a hang.
  PairVerdicts Tell(HalfOfAPair* one, HalfOfAPair* other,
                    const OpenedNs& opened_ns = {std::nullopt, std::nullopt}) {
    const JoinedJobs joined = JoinJobs(one->state(), {other->state()});
    return SplitVerdicts(joined, Diagnose(joined.state, At(90), Limits()), opened_ns);
  }
  PairVerdicts TrainerTells() { return Tell(&trainer_, &engine_); }
  PairVerdicts EngineTells() { return Tell(&engine_, &trainer_); }

  HalfOfAPair trainer_{"trainer", 0}, engine_{"engine", 2};
};

TEST_F(PairsTest, JobsWithThePartsOfOneGroupShareIt) {
  EXPECT_EQ(OpenCommunicators(trainer_.state()), std::vector<uint64_t>{kWeights});
  EXPECT_EQ(SharedCommunicators(trainer_.state(), engine_.state()),
            std::vector<uint64_t>{kWeights});
}

TEST_F(PairsTest, JobsWithTheSameRanksOfAGroupDoNotShareIt) {
  HalfOfAPair twin("twin", 0);
  EXPECT_TRUE(SharedCommunicators(trainer_.state(), twin.state()).empty());
}

TEST_F(PairsTest, PartsOfGroupsThatWereMadeAtOtherTimesAreNotShared) {
  for (int rank : {2, 3}) engine_.weights().members[rank].init_entered_ns = At(30);
  EXPECT_TRUE(SharedCommunicators(trainer_.state(), engine_.state()).empty());
}

TEST_F(PairsTest, PartsOfAGroupThatLacksARankAreNotShared) {
  engine_.weights().members.erase(3);
  EXPECT_TRUE(SharedCommunicators(trainer_.state(), engine_.state()).empty());
}

TEST_F(PairsTest, AnIdThatNoOtherStartHasSuffices) {
  for (HalfOfAPair* half : {&trainer_, &engine_}) half->weights().kind = CommKind::kNccl;
  engine_.weights().members.erase(3);
  engine_.weights().members[2].init_entered_ns = At(30);
  EXPECT_EQ(SharedCommunicators(trainer_.state(), engine_.state()).size(), 1u);
  for (HalfOfAPair* half : {&trainer_, &engine_}) {
    half->weights().name = segment::kMpiWorldName;  // whose id all jobs may have
  }
  EXPECT_TRUE(SharedCommunicators(trainer_.state(), engine_.state()).empty());
}

TEST_F(PairsTest, ProcessesOfUnknownUsersJoinNothing) {
  for (Process& process : trainer_.state().processes) process.uid = -1;
  for (Process& process : engine_.state().processes) process.uid = -1;
  EXPECT_TRUE(SharedCommunicators(trainer_.state(), engine_.state()).empty());
}

TEST_F(PairsTest, WhatProcessesOfAnotherUserSayJoinsNothing) {
  for (Process& process : trainer_.state().processes) process.uid = 1000;
  for (Process& process : engine_.state().processes) process.uid = 1001;
  EXPECT_TRUE(SharedCommunicators(trainer_.state(), engine_.state()).empty());
  for (Process& process : engine_.state().processes) process.uid = 1000;
  EXPECT_EQ(SharedCommunicators(trainer_.state(), engine_.state()).size(), 1u);
}

TEST_F(PairsTest, TheJoinedStateHasTheRanksOfBothAndKeepsTheirOwnGroupsApart) {
  const JoinedJobs joined = JoinJobs(trainer_.state(), {engine_.state()});
  EXPECT_EQ(joined.state.communicators.at(kWeights).members.size(), 4u);
  EXPECT_EQ(joined.state.communicators.size(), 3u);
  EXPECT_EQ(joined.state.processes[3].global_rank, 3);
  EXPECT_EQ(joined.PartOf(1), 0);
  EXPECT_EQ(joined.PartOf(2), 1);
  EXPECT_EQ(joined.PartOf(4), -1);
}

TEST_F(PairsTest, TheJobThatHoldsTheOtherUpTellsIt) {
  trainer_.EnterWeights({0, 1}, At(10));
  engine_.EnterWeights({2}, At(11));
  const PairVerdicts engine = EngineTells();
  ASSERT_EQ(engine.own.size(), 1u);
  const Verdict& verdict = engine.own[0];
  EXPECT_EQ(verdict.cause, Cause::kMissingRank);
  EXPECT_EQ(verdict.certainty, Certainty::kCertain);
  ASSERT_EQ(verdict.culprits.size(), 1u);
  EXPECT_EQ(verdict.culprits[0].rank, 1);  // of the engine
  EXPECT_EQ(verdict.culprits[0].process, 1);
  EXPECT_FALSE(verdict.culprits[0].other_job.has_value());
  EXPECT_EQ(verdict.waiting_ranks, (std::vector<int32_t>{0, 2, 3}));
  EXPECT_EQ(verdict.waiting_processes, std::vector<int32_t>{0});
  EXPECT_EQ(verdict.evidence.back(), "ranks 2-3 are ranks 0-1 of job trainer");
  EXPECT_TRUE(absl::StrContains(verdict.summary, "gloo communicator \"weights\""));
  EXPECT_TRUE(absl::StartsWith(verdict.summary, "rank 1 (node-1")) << verdict.summary;

  const PairVerdicts trainer = TrainerTells();
  EXPECT_TRUE(trainer.own.empty());
  ASSERT_TRUE(trainer.told_by.has_value());
  EXPECT_EQ(trainer.told_by->job, "engine");
}

TEST_F(PairsTest, TheWaitingJobReportsTheErrorOfTheEndedJob) {
  trainer_.EnterWeights({0, 1}, At(10));
  for (Process& process : engine_.state().processes) {
    process.liveness = Liveness::kExited;
    process.exit_code = 1;
    process.ended_ns = At(20);
    process.error = "ValueError: no weight at engine.py:57";
    process.error_ns = At(15);
  }
  const PairVerdicts trainer = TrainerTells();
  ASSERT_FALSE(trainer.own.empty());
  const std::string& summary = trainer.own[0].summary;
  EXPECT_TRUE(absl::StartsWith(summary, "ranks 2-3 are ranks 0-1 of job engine: ")) << summary;
  EXPECT_TRUE(absl::StrContains(summary, "ValueError: no weight")) << summary;
  EXPECT_EQ(trainer.own[0].culprits[0].process, -1);
  EXPECT_EQ(trainer.own[0].culprits[0].pid, 4200);
  ASSERT_TRUE(trainer.own[0].culprits[0].other_job.has_value());
  EXPECT_EQ(trainer.own[0].culprits[0].other_job->key, JobKey("engine"));
  EXPECT_EQ(trainer.own[0].culprits[0].other_job->rank, 0);
}

// The jobs share nothing but a store.
TEST_F(PairsTest, TheWaitingJobReportsTheKeyThatTheOtherJobOwes) {
  for (HalfOfAPair* half : {&trainer_, &engine_}) half->state().communicators.erase(kWeights);
  for (Process& process : trainer_.state().processes) {
    BlockedCall call;
    call.thread = static_cast<uint32_t>(process.pid);
    call.op = Op::kstore_wait;
    call.since_ns = At(10);
    call.key = "/ready/3";
    call.keys = 1;
    process.blocked.push_back(call);
  }
  EXPECT_TRUE(WaitsForKey(trainer_.state()));
  EXPECT_FALSE(WaitsForKey(engine_.state()));
  for (Process& process : engine_.state().processes) {
    process.liveness = Liveness::kExited;
    process.ended_ns = At(20);
  }
  engine_.state().processes[1].error = "ValueError: no weight at engine.py:57";
  engine_.state().processes[1].error_ns = At(15);
  const PairVerdicts trainer = TrainerTells();
  ASSERT_FALSE(trainer.own.empty());
  EXPECT_EQ(trainer.own[0].culprits[0].rank, 3);
  const std::string& summary = trainer.own[0].summary;
  EXPECT_TRUE(absl::StartsWith(summary, "rank 3 is rank 1 of job engine: ")) << summary;
  EXPECT_TRUE(absl::StrContains(summary, "ValueError: no weight")) << summary;
}

TEST_F(PairsTest, AnOpenIncidentGoesOn) {
  trainer_.EnterWeights({0, 1}, At(10));
  engine_.EnterWeights({2}, At(11));
  EXPECT_TRUE(Tell(&engine_, &trainer_, {std::nullopt, At(20)}).own.empty());
  EXPECT_FALSE(Tell(&trainer_, &engine_, {At(20), std::nullopt}).own.empty());
}

// The hosts of one job may be back first after a restart of the daemon, and open one more.
TEST_F(PairsTest, OfTwoOpenIncidentsTheOlderOneGoesOn) {
  trainer_.EnterWeights({0, 1}, At(10));
  engine_.EnterWeights({2}, At(11));
  EXPECT_FALSE(Tell(&trainer_, &engine_, {At(20), At(80)}).own.empty());
  EXPECT_EQ(Tell(&engine_, &trainer_, {At(80), At(20)}).told_by, JobKey("trainer"));
  EXPECT_FALSE(Tell(&engine_, &trainer_, {At(20), At(80)}).own.empty());
}

TEST_F(PairsTest, TheIncidentOfAJobThatHasEndedDoesNotGoOn) {
  trainer_.EnterWeights({0, 1}, At(10));
  for (Process& process : engine_.state().processes) {
    process.liveness = Liveness::kExited;
    process.ended_ns = At(20);
  }
  EXPECT_FALSE(Tell(&trainer_, &engine_, {At(80), At(20)}).own.empty());
  EXPECT_FALSE(Tell(&trainer_, &engine_, {std::nullopt, At(20)}).own.empty());
}

// Whichever reports it, both see the same.
TEST_F(PairsTest, AContradictionOfTwoJobsIsReportedOnce) {
  trainer_.EnterWeights({0, 1}, At(10));
  engine_.job.On(kWeights);
  engine_.job.Enter({2, 3}, At(11), AllReduce());
  const PairVerdicts trainer = TrainerTells(), engine = EngineTells();
  EXPECT_NE(trainer.own.empty(), engine.own.empty());
  EXPECT_NE(trainer.told_by.has_value(), engine.told_by.has_value());
}

TEST_F(PairsTest, TheOwnHangOfAJobIsItsOwn) {
  engine_.job.On(kDp);
  engine_.job.Enter({0}, At(10));
  EXPECT_EQ(EngineTells().own.size(), 1u);
  const PairVerdicts trainer = TrainerTells();
  EXPECT_TRUE(trainer.own.empty());
  EXPECT_FALSE(trainer.told_by.has_value());
}

TEST_F(PairsTest, AWaitBehindTheOthersOwnHangIsReportedByIt) {
  trainer_.EnterWeights({0, 1}, At(12));
  engine_.job.On(kDp);
  engine_.job.Enter({0}, At(10));  // for its rank 1, which comes to nothing
  const PairVerdicts engine = EngineTells();
  ASSERT_FALSE(engine.own.empty());
  EXPECT_EQ(engine.own[0].culprits[0].rank, 1);
  const PairVerdicts trainer = TrainerTells();
  EXPECT_TRUE(trainer.own.empty());
  ASSERT_TRUE(trainer.told_by.has_value());
}

TEST_F(PairsTest, JobsThatWorkHaveNoVerdict) {
  EXPECT_TRUE(TrainerTells().own.empty());
  EXPECT_FALSE(TrainerTells().told_by.has_value());
}

}  // namespace
}  // namespace rollcall
