// SPDX-License-Identifier: Apache-2.0
// The rules that need more than the collectives of one communicator: deadlocks, sends
// and receives, GPUs that have not started a call, lost hosts, teardown, NCCL errors,
// concurrent use, stragglers.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "daemon/diagnosis/diagnose.h"
#include "job_builder.h"

namespace rollcall {
namespace {

using Ranks = std::vector<int32_t>;

struct Case {
  const char* name;
  std::function<JobState()> job;
  double now;
  Cause cause;
  Ranks blamed;
  Certainty certainty = Certainty::kCertain;
  bool nothing = false;  // no verdict at all
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

JobBuilder Pair(bool markers = true) {
  JobBuilder job(2, markers);
  job.Finish(4);
  return job;
}

// All ranks have entered call 24; the GPU of rank 3 has not started it.
JobBuilder NotStarted() {
  JobBuilder job(4);
  job.Finish(24);
  job.Enter({0, 1, 2, 3}, At(10));
  --job.member(3).started;
  job.member(3).waiting_since_ns = 0;
  return job;
}

// The root has handed out a broadcast of MPI, and the others do not get out of it.
JobBuilder LeftByItsRoot() {
  const CallArgs broadcast = {Op::kMPI_Bcast, kNoDtype, kNoReduction, 0, 4};
  JobBuilder job(3);
  job.Finish(24, broadcast);
  job.Finish({0}, 1, broadcast, At(10));
  job.Enter({1, 2}, At(10), broadcast);
  return job;
}

CallArgs OneSided(Op op, int peer) { return {op, kNoDtype, kNoReduction, peer, 0}; }

// clang-format off
const Case kCases[] = {
    {"send_without_receive",
     [] {
       auto j = Pair();
       j.Issue(0, Send(1), At(10));
       return j.state;
     },
     70, Cause::kUnmatchedP2p, {1}},
    {"receive_without_send",
     [] {
       auto j = Pair();
       j.Issue(1, Recv(0), At(10));
       return j.state;
     },
     70, Cause::kUnmatchedP2p, {0}},
    {"receive_without_send_below_the_limit",
     [] {
       auto j = Pair();
       j.Issue(1, Recv(0), At(10));
       return j.state;
     },
     24, Cause::kUnmatchedP2p, {}, Certainty::kCertain, true},
    {"without_markers_the_wait_is_inferred",
     [] {
       auto j = Pair(false);
       j.Issue(0, Send(1), At(10));
       return j.state;
     },
     70, Cause::kUnmatchedP2p, {1}, Certainty::kLikely},
    {"the_second_receive_is_missing",
     [] {
       auto j = Pair();
       j.Issue(0, Send(1), At(5));
       j.Issue(1, Recv(0), At(5));
       j.CompleteP2p({0, 1});
       j.Issue(0, Send(1), At(10));
       return j.state;
     },
     70, Cause::kUnmatchedP2p, {1}},
    {"wait_for_a_signal_that_is_not_sent",
     [] {
       auto j = Pair();
       j.Issue(0, OneSided(Op::kSignal, 1), At(5));
       j.CompleteP2p({0});
       j.Issue(1, OneSided(Op::kWaitSignal, 0), At(5));
       j.CompleteP2p({1});
       j.Issue(1, OneSided(Op::kWaitSignal, 0), At(10));
       return j.state;
     },
     70, Cause::kUnmatchedP2p, {0}},
    {"a_put_with_a_signal_is_one",
     [] {
       auto j = Pair();
       j.Issue(0, OneSided(Op::kPutSignal, 1), At(5));
       j.CompleteP2p({0});
       j.Issue(1, OneSided(Op::kWaitSignal, 0), At(10));
       return j.state;
     },
     70, Cause::kStalledInFlight, {}},
    {"a_signal_does_not_wait",
     [] {
       auto j = Pair(false);
       j.Issue(0, OneSided(Op::kSignal, 1), At(10));
       return j.state;
     },
     70, Cause::kUnmatchedP2p, {}, Certainty::kCertain, true},
    {"sizes_differ_without_a_majority",
     [] {
       auto j = Pair();
       j.Issue(0, Send(1, 64), At(10));
       j.Issue(1, Recv(0, 32), At(11));
       return j.state;
     },
     70, Cause::kUnmatchedP2p, {0, 1}, Certainty::kLikely},
    {"equal_bytes_of_other_types_match",
     [] {
       auto j = Pair();
       j.Issue(0, Send(1, 64), At(10));
       CallArgs bytes = Recv(0, 256);
       bytes.dtype = 0;
       j.Issue(1, bytes, At(11));
       return j.state;
     },
     70, Cause::kStalledInFlight, {}},
    {"both_send_first",
     [] {
       auto j = Pair();
       j.Issue(0, Send(1), At(10));
       j.Issue(0, Recv(1), At(10));
       j.Issue(1, Send(0), At(10));
       j.Issue(1, Recv(0), At(10));
       return j.state;
     },
     70, Cause::kDeadlock, {0, 1}},
    {"grouped_they_match",
     [] {
       auto j = Pair();
       for (int rank : {0, 1}) {
         j.Issue(rank, Send(1 - rank), At(10), 7);
         j.Issue(rank, Recv(1 - rank), At(10), 7);
       }
       return j.state;
     },
     70, Cause::kStalledInFlight, {}},
    {"a_ring_of_sends",
     [] {
       JobBuilder j(4);
       for (int rank = 0; rank < 4; ++rank) j.Issue(rank, Send((rank + 1) % 4), At(10 + rank));
       return j.state;
     },
     70, Cause::kDeadlock, {0, 1, 2, 3}, Certainty::kLikely},
    {"two_ranks_send_to_each_other",
     [] {
       auto j = Pair();
       for (int rank : {0, 1}) j.Issue(rank, Send(1 - rank), At(10));
       return j.state;
     },
     70, Cause::kDeadlock, {0, 1}, Certainty::kLikely},
    {"a_pipeline_waits_for_its_first_stage",
     [] {
       JobBuilder j(4);
       for (int rank = 1; rank < 4; ++rank) j.Issue(rank, Recv(rank - 1), At(10));
       return j.state;
     },
     70, Cause::kUnmatchedP2p, {0}},
    {"a_stage_that_died",
     [] {
       JobBuilder j(3);
       for (int rank = 1; rank < 3; ++rank) j.Issue(rank, Recv(rank - 1), At(10));
       j.Die(0, At(11));
       return j.state;
     },
     70, Cause::kRankDied, {0}},
    {"one_end_of_a_grouped_exchange_is_missing",
     [] {
       JobBuilder j(3);
       for (int rank : {0, 1}) {
         for (int peer = 0; peer < 3; ++peer) {
           j.Issue(rank, Send(peer), At(10), 3);
           j.Issue(rank, Recv(peer), At(10), 3);
         }
       }
       return j.state;
     },
     70, Cause::kUnmatchedP2p, {2}},
    {"send_before_the_collective_that_its_peer_is_in",
     [] {
       auto j = Pair();
       j.Issue(0, Send(1), At(10));
       j.Enter({1}, At(10));
       return j.state;
     },
     70, Cause::kUnmatchedP2p, {0, 1}, Certainty::kLikely},

    {"orders_of_two_communicators_on_one_stream",
     [] {
       JobBuilder j(2);
       j.AddCommunicator(1, "a", {0, 1});
       j.AddCommunicator(2, "b", {0, 1});
       for (int rank : {0, 1}) {
         j.On(rank == 0 ? 1 : 2);
         j.Enter({rank}, At(10));  // begun
         j.On(rank == 0 ? 2 : 1);
         j.Enter({rank}, At(11));  // queued behind it
         --j.member(rank).started;
         j.member(rank).waiting_since_ns = 0;
       }
       return j.state;
     },
     70, Cause::kDeadlock, {0, 1}},
    {"orders_of_two_communicators_on_the_gpu",
     [] {
       JobBuilder j(2);
       j.AddCommunicator(1, "a", {0, 1});
       j.AddCommunicator(2, "b", {0, 1});
       for (int rank : {0, 1}) {
         j.On(rank == 0 ? 1 : 2);
         j.Enter({rank}, At(10));
         j.On(rank == 0 ? 2 : 1);
         j.Enter({rank}, At(11));
       }
       return j.state;
     },
     70, Cause::kDeadlock, {0, 1}, Certainty::kLikely},
    {"a_rank_that_waits_in_another_library_for_the_others",
     [] {
       JobBuilder j(3);
       j.Finish(24);
       j.Enter({0, 1}, At(10));
       j.AddCommunicator(7, "control", {0, 1, 2});
       j.comm().kind = CommKind::kGloo;
       j.Enter({2}, At(12));
       return j.state;
     },
     70, Cause::kMissingRank, {2}, Certainty::kLikely},
    {"a_rank_that_waits_in_another_library_with_more_ranks_than_it_has_left",
     [] {
       JobBuilder j(8);
       j.AddCommunicator(8, "tp", {0, 1, 2, 3});
       j.On(8);
       j.Finish(24);
       j.Enter({0, 1, 2}, At(10));  // rank 3 has left it out, and all others wait for these
       j.AddCommunicator(7, "control", {0, 1, 2, 3, 4, 5, 6, 7});
       j.comm().kind = CommKind::kGloo;
       j.Enter({3, 4, 5, 6, 7}, At(12));
       return j.state;
     },
     70, Cause::kMissingRank, {3}, Certainty::kLikely},
    {"one_rank_in_each_of_two_libraries_while_most_are_in_one",
     [] {
       JobBuilder j(4);
       j.AddCommunicator(8, "tp", {0, 1});
       j.On(8);
       j.Enter({1}, At(10));
       j.AddCommunicator(7, "control", {0, 1, 2, 3});
       j.comm().kind = CommKind::kGloo;
       j.Enter({0, 2, 3}, At(12));
       return j.state;
     },
     70, Cause::kDeadlock, {0, 1}},
    {"two_ranks_in_two_libraries",
     [] {
       JobBuilder j(2);
       j.Enter({0}, At(10));
       j.AddCommunicator(7, "control", {0, 1});
       j.comm().kind = CommKind::kGloo;
       j.Enter({1}, At(12));
       return j.state;
     },
     70, Cause::kDeadlock, {0, 1}},
    {"an_absent_rank_that_waits_for_others_elsewhere",
     [] {
       JobBuilder j(4);
       j.Finish(24);
       j.Enter({0, 1}, At(10));
       j.process(3).waits_outside_since_ns = At(20);  // in torch's store, for rank 2
       j.process(3).stacks_ns = At(20);
       return j.state;
     },
     70, Cause::kMissingRank, {2}, Certainty::kLikely},
    {"an_absent_rank_that_waited_for_others_elsewhere_before",
     [] {
       JobBuilder j(4);
       j.Finish(24);
       j.process(3).waits_outside_since_ns = At(2);
       j.process(3).stacks_ns = At(5);  // what it has done since is unseen
       j.Enter({0, 1}, At(10));
       return j.state;
     },
     70, Cause::kMissingRank, {2, 3}},
    {"two_absent_ranks_and_the_stack_of_one_has_not_come",
     [] {
       JobBuilder j(4);
       j.Finish(24);
       j.Enter({0, 1}, At(10));
       j.process(2).stacks_ns = At(20);  // rank 3 may wait for it
       return j.state;
     },
     70, Cause::kMissingRank, {2, 3}, Certainty::kLikely},
    {"two_absent_ranks_with_stacks",
     [] {
       JobBuilder j(4);
       j.Finish(24);
       j.Enter({0, 1}, At(10));
       j.process(2).stacks_ns = At(20);
       j.process(3).stacks_ns = At(20);
       return j.state;
     },
     70, Cause::kMissingRank, {2, 3}},
    {"a_chain_is_no_cycle",
     [] {
       JobBuilder j(4);
       for (uint64_t id = 1; id < 4; ++id) {
         j.AddCommunicator(id, "", {static_cast<int>(id) - 1, static_cast<int>(id)});
         j.Enter({0}, At(10 + static_cast<double>(id)));
       }
       return j.state;  // 0 waits for 1, 1 for 2, 2 for 3
     },
     70, Cause::kMissingRank, {3}},

    {"gpu_has_not_started_the_call", [] { return NotStarted().state; }, 70,
     Cause::kBlockedBeforeStart, {3}},
    {"another_wait_blocks_the_gpu",
     [] {
       auto j = NotStarted();
       j.AddCommunicator(1, "tp", {3, 2});
       j.Enter({0}, At(12));
       return j.state;
     },
     70, Cause::kDeadlock, {2, 3}},
    // Call 24 has returned on all ranks but has not finished; ranks 0 and 1 are inside call 25.
    {"a_wait_behind_a_call_that_is_still_open",
     [] {
       JobBuilder j(3);
       j.Finish(24);
       j.Enter({0, 1, 2}, At(9));
       j.member(2).waiting_since_ns = 0;
       j.Enter({0, 1}, At(10));
       for (int rank : {0, 1}) j.member(rank).awaited = 1 + 25;
       return j.state;
     },
     70, Cause::kMissingRank, {2}},
    {"a_rank_that_has_made_an_early_returning_call_and_does_not_wait_for_it",
     [] {
       JobBuilder j(3);
       j.Finish(24);
       j.Enter({0, 1, 2}, At(9), {Op::kMPI_Ibarrier, kNoDtype, kNoReduction, kNoPeer, 0});
       j.member(2).waiting_since_ns = 0;
       return j.state;
     },
     70, Cause::kStalledInFlight, {2}, Certainty::kPossible},
    {"a_rank_that_has_left_a_broadcast_of_mpi_and_calls_nothing_of_mpi",
     [] { return LeftByItsRoot().state; }, 70, Cause::kStalledInFlight, {0}, Certainty::kLikely},
    {"a_rank_that_has_left_a_broadcast_of_mpi_for_another_call_of_mpi",
     [] {
       JobBuilder j = LeftByItsRoot();
       j.process(0).blocked = {{1, Op::kMPI_Testall, 0, At(11)}};
       return j.state;
     },
     70, Cause::kStalledInFlight, {1, 2}},
    {"a_rank_that_has_posted_a_call_of_ucc_and_does_not_test_it",
     [] {
       JobBuilder j(3);
       j.comm().kind = CommKind::kUcc;
       j.Finish(24);
       j.Enter({0, 1, 2}, At(9));
       j.member(2).waiting_since_ns = 0;
       return j.state;
     },
     70, Cause::kStalledInFlight, {2}, Certainty::kPossible},
    {"a_group_that_has_not_ended_has_not_been_made",
     [] {
       auto j = NotStarted();
       --j.member(3).returned;
       return j.state;
     },
     70, Cause::kMissingRank, {3}},

    {"a_lost_host_takes_all_its_ranks",
     [] {
       JobBuilder j(4);
       j.process(3).host = j.process(2).host;
       j.Finish(24);
       j.Enter({0, 1}, At(10));
       for (int rank : {2, 3}) j.process(rank).liveness = Liveness::kSilent;
       return j.state;
     },
     70, Cause::kHostLost, {2, 3}, Certainty::kLikely},
    {"a_host_lost_inside_the_call",
     [] {
       JobBuilder j(4);
       j.Finish(24);
       j.Enter({0, 1, 2, 3}, At(10));
       j.process(3).liveness = Liveness::kSilent;
       return j.state;
     },
     70, Cause::kHostLost, {3}, Certainty::kLikely},
    {"an_absent_rank_comes_before_a_silent_rank",
     [] {
       JobBuilder j(4);
       j.Finish(24);
       j.Enter({0, 1}, At(10));
       j.process(3).liveness = Liveness::kSilent;
       return j.state;
     },
     70, Cause::kMissingRank, {2}},

    {"an_error_on_one_rank",
     [] {
       JobBuilder j(4);
       j.Finish(24);
       j.Enter({0, 1, 2, 3}, At(10));
       j.member(2).async_error = 1;
       return j.state;
     },
     70, Cause::kNcclError, {2}},
    {"remote_errors_show_a_dead_peer",
     [] {
       JobBuilder j(4);
       j.Finish(24);
       j.Enter({0, 1, 2}, At(10));
       for (int rank : {0, 1}) j.member(rank).async_error = 6;
       j.Die(3, At(9));
       return j.state;
     },
     70, Cause::kRankDied, {3}},
    {"the_rank_with_an_error_of_its_own",
     [] {
       JobBuilder j(4);
       j.Finish(24);
       j.Enter({0, 1, 2, 3}, At(10));
       for (int rank : {0, 1, 3}) j.member(rank).async_error = 6;
       j.member(2).async_error = 2;
       return j.state;
     },
     70, Cause::kNcclError, {2}},
    {"a_call_that_failed_at_once",
     [] {
       JobBuilder j(4);
       j.Finish(24);
       j.Enter({0, 1, 2}, At(10));
       CallRecord failed = j.member(3).records.back();
       ++failed.index;
       failed.position = 24;
       failed.result = 4;
       failed.entered_ns = At(10);
       failed.returned_ns = At(10);
       j.member(3).records.push_back(failed);
       return j.state;
     },
     70, Cause::kNcclError, {3}},
    {"an_error_while_no_rank_waits",
     [] {
       JobBuilder j(4);
       j.Finish(24);
       j.member(2).async_error = 1;
       return j.state;
     },
     1000, Cause::kNcclError, {}, Certainty::kCertain, true},

    {"two_threads_inside_one_communicator",
     [] {
       JobBuilder j(4);
       j.Finish(24);
       j.Enter({0, 1, 2, 3}, At(10));
       CallRecord& last = j.member(1).records.back();
       CallRecord& before = j.member(1).records[23];
       before.thread = 2;
       before.returned_ns = last.entered_ns + 1;
       j.member(1).concurrent_use = true;
       return j.state;
     },
     70, Cause::kConcurrentUse, {1}, Certainty::kLikely},

    {"inside_destroy_while_another_continues",
     [] {
       JobBuilder j(2);
       j.process(1).host = j.process(0).host;
       j.Finish(24);
       j.TearDown(0, Op::kCommDestroy, At(10));
       return j.state;
     },
     70, Cause::kTeardownHang, {1}},
    {"destroy_does_not_wait_for_other_hosts",
     [] {
       JobBuilder j(2);
       j.Finish(24);
       j.TearDown(0, Op::kCommDestroy, At(10));
       return j.state;
     },
     70, Cause::kTeardownHang, {}, Certainty::kLikely},
    {"finalize_waits_for_all_hosts",
     [] {
       JobBuilder j(2);
       j.Finish(24);
       j.TearDown(0, Op::kCommFinalize, At(10));
       return j.state;
     },
     70, Cause::kTeardownHang, {1}},
    {"a_destroy_with_open_calls_waits_for_those",
     [] {
       JobBuilder j(2);
       j.Finish(24);
       j.Enter({0}, At(9));
       j.TearDown(0, Op::kCommDestroy, At(10));
       return j.state;
     },
     70, Cause::kMissingRank, {1}},

    {"all_inside_a_creation_that_does_not_return",
     [] {
       JobBuilder j(2);
       j.Initializing(0, At(10));
       j.Initializing(1, At(12));
       return j.state;
     },
     70, Cause::kStalledInFlight, {}},
    {"the_rank_that_never_joined_waits_elsewhere",
     [] {
       JobBuilder j(3);
       j.Finish(4);
       j.AddCommunicator(9, "new", {0, 1, 2});
       j.Initializing(0, At(10));
       for (int rank : {1, 2}) j.comm().members.erase(rank);
       j.comm().parent = kDp;
       j.On(kDp);
       j.Enter({1}, At(9));
       j.Enter({0}, At(9));
       return j.state;
     },
     70, Cause::kMissingRank, {2}},
    {"a_rank_that_has_not_joined_waits_in_the_store_for_another_one",
     [] {
       JobBuilder j(3);
       j.AddCommunicator(9, "new", {0, 1, 2});
       j.Initializing(2, At(10));
       j.process(0).waits_outside_since_ns = At(20);
       for (int rank : {0, 1}) {
         j.process(rank).stacks_ns = At(20);
         j.comm().members.erase(rank);
       }
       return j.state;
     },
     70, Cause::kInitIncomplete, {1}, Certainty::kLikely},
};
// clang-format on

class WaitRulesTest : public testing::TestWithParam<Case> {};

TEST_P(WaitRulesTest, Blames) {
  const Case& c = GetParam();
  const std::vector<Verdict> verdicts = Diagnose(c.job(), At(c.now), Limits());
  if (c.nothing) {
    EXPECT_TRUE(verdicts.empty()) << verdicts[0].summary;
    return;
  }
  ASSERT_FALSE(verdicts.empty());
  const Verdict& v = verdicts[0];
  EXPECT_STREQ(CauseName(v.cause), CauseName(c.cause)) << v.summary;
  Ranks blamed = CulpritRanks(v.culprits);
  std::sort(blamed.begin(), blamed.end());
  EXPECT_EQ(blamed, c.blamed) << v.summary;
  EXPECT_STREQ(CertaintyName(v.certainty), CertaintyName(c.certainty)) << v.summary;
  EXPECT_FALSE(v.summary.empty());
  EXPECT_FALSE(v.evidence.empty());
  if (c.certainty != Certainty::kCertain) {
    EXPECT_FALSE(v.missing_evidence.empty() && v.cause != Cause::kConcurrentUse) << v.summary;
  }
  for (size_t i = 1; i < verdicts.size(); ++i) {
    EXPECT_TRUE(verdicts[i].is_consequence) << verdicts[i].summary;
  }
}

INSTANTIATE_TEST_SUITE_P(Rules, WaitRulesTest, testing::ValuesIn(kCases),
                         [](const auto& info) { return info.param.name; });

// All ranks of a job are in a call, and those in `suspended` were stopped by a signal.
std::vector<Verdict> JudgeSuspended(const std::vector<int>& suspended, char state = 'T') {
  JobBuilder job(4);
  job.Finish(24);
  job.Enter({0, 1, 2}, At(10));
  for (const int rank : suspended) job.process(rank).state = state;
  return Diagnose(job.state, At(500), Limits());
}

// As by Slurm's suspend, or by a person who stops the whole job: it goes on when they want it.
TEST(SuspendedJobTest, HasNoHang) { EXPECT_TRUE(JudgeSuspended({0, 1, 2, 3}).empty()); }

TEST(SuspendedJobTest, HasNoHangIfOneRankRunsThatNoRankWaitsFor) {
  EXPECT_TRUE(JudgeSuspended({0, 1, 2}).empty());
}

TEST(SuspendedJobTest, OneRankThatRunsAndWaitsIsEnough) {
  const std::vector<Verdict> verdicts = JudgeSuspended({1, 2, 3});
  ASSERT_FALSE(verdicts.empty());
  EXPECT_EQ(CulpritRanks(verdicts[0].culprits), (Ranks{3}));
}

TEST(SuspendedJobTest, ADebuggerSuspendsNoJob) {
  EXPECT_FALSE(JudgeSuspended({0, 1, 2, 3}, 't').empty());
}

TEST(SuspendedJobTest, IsFrozenByAControlGroup) {
  JobBuilder job(4);
  job.Finish(24);
  job.Enter({0, 1, 2}, At(10));
  for (int rank = 0; rank < 4; ++rank) job.process(rank).wait_channel = "do_freezer_trap";
  EXPECT_TRUE(Diagnose(job.state, At(500), Limits()).empty());
}

// Its ranks do not go on all at once.
TEST(SuspendedJobTest, ARankThatIsStillStoppedDoesNotMakeTheWaitsLong) {
  JobBuilder job(4);
  job.Finish(24);
  job.Enter({0, 1, 2}, At(10));
  job.process(0).suspensions = {{At(10), At(490)}};
  for (const int rank : {1, 2, 3}) job.process(rank).state = 'T';
  const std::vector<Verdict> verdicts = Diagnose(job.state, At(500), Limits());
  for (const Verdict& verdict : verdicts) EXPECT_EQ(verdict.counts_from_ns, At(490));
}

// As by gang scheduling, which would else begin each wait anew before it is long.
TEST(SuspendedJobTest, ItsWaitsCountWithoutTheTimesInWhichItDidNotRun) {
  JobBuilder job(4);
  job.Finish(24);
  job.Enter({0, 1, 2}, At(10));
  for (int rank = 0; rank < 4; ++rank) {
    job.process(rank).suspensions = {{At(5), At(20)}, {At(100), At(200)}, {At(300), At(400)}};
  }
  const std::vector<Verdict> verdicts = Diagnose(job.state, At(500), Limits());
  ASSERT_FALSE(verdicts.empty());
  EXPECT_EQ(verdicts[0].counts_from_ns, At(10 + 10 + 100 + 100));
}

TEST(StragglerTest, WarnsOfTheRankThatIsAlwaysLast) {
  JobBuilder job(4);
  job.Finish(100);
  job.comm().arrivals = {64, 2, 63, 140'000'000, 900'000'000};
  const std::vector<Verdict> verdicts = Diagnose(job.state, At(100), Limits());
  ASSERT_EQ(verdicts.size(), 1u);
  EXPECT_TRUE(IsWarning(verdicts[0].cause));
  EXPECT_EQ(verdicts[0].summary,
            "rank 2 (node-2, pid 4002) is the last to enter nearly every call on communicator "
            "\"dp\", typically by 140 ms; nothing hangs");
}

TEST(StragglerTest, AHangHidesStragglers) {
  JobBuilder job(4);
  job.Finish(100);
  job.comm().arrivals = {64, 2, 63, 140'000'000, 900'000'000};
  job.Enter({0, 1, 2}, At(10));
  for (const Verdict& v : Diagnose(job.state, At(100), Limits())) EXPECT_FALSE(IsWarning(v.cause));
}

TEST(LateTest, ARankThatRunsOtherCodeIsLate) {
  JobBuilder job(4);
  job.Finish(24);
  job.Enter({0, 1, 2}, At(10));
  job.process(3).cpu_moving = true;
  job.process(3).motion = Motion::kMoving;
  const std::vector<Verdict> verdicts = Diagnose(job.state, At(40), Limits());
  ASSERT_EQ(verdicts.size(), 1u);
  EXPECT_TRUE(verdicts[0].late);
  EXPECT_NE(verdicts[0].summary.find("is late for AllReduce #24"), std::string::npos);
}

TEST(LateTest, StacksFromBeforeTheWaitHaveNoEffect) {
  JobBuilder job(4);
  job.Finish(24);
  job.Enter({0, 1, 2}, At(10));
  job.process(3).cpu_moving = true;
  job.process(3).motion = Motion::kMoving;
  job.process(3).stack_words = "evaluate";
  job.process(3).stacks_ns = At(9);
  const std::vector<Verdict> verdicts = Diagnose(job.state, At(40), Limits());
  ASSERT_EQ(verdicts.size(), 1u);
  EXPECT_FALSE(verdicts[0].late);
  EXPECT_EQ(verdicts[0].stack_words, "");
}

TEST(LearnedLimitTest, ACallThatIsUsuallyFastIsSuspectedSooner) {
  JobBuilder job(4);
  job.Finish(24);
  job.Enter({0, 1, 2}, At(10));
  job.comm().usual = {{Op::kAllReduce, 21, 100, 20'000'000}};
  EXPECT_TRUE(Diagnose(job.state, At(14.9), Limits()).empty());
  EXPECT_FALSE(Diagnose(job.state, At(15), Limits()).empty());
}

TEST(LearnedLimitTest, ACallThatUsuallyTakesLongHasTheCeiling) {
  JobBuilder job(4);
  job.Finish(24);
  job.Enter({0, 1, 2}, At(10));
  job.comm().usual = {{Op::kAllReduce, 21, 100, 40'000'000'000}};
  EXPECT_TRUE(Diagnose(job.state, At(24.9), Limits()).empty());
  EXPECT_FALSE(Diagnose(job.state, At(25), Limits()).empty());
}

TEST(MovingTest, AWaitThatHasJustBegunIsNotAnExcuse) {
  JobBuilder job(3);
  job.Finish(4);
  job.Enter({0}, At(10));
  job.Enter({1}, At(10));
  job.AddCommunicator(1, "tp", {2, 1});
  job.Enter({0}, At(69.9));  // a wait that has just begun
  const std::vector<Verdict> verdicts = Diagnose(job.state, At(70), Limits());
  ASSERT_FALSE(verdicts.empty());
  EXPECT_EQ(CulpritRanks(verdicts[0].culprits), (Ranks{2}));
}

// After a restart of the daemon the number of earlier sends is not known: these two may never meet.
TEST(OtherSizesTest, OnlyAPairThatIsKnownIsConfirmedAtOnce) {
  for (const bool is_known : {true, false}) {
    auto j = Pair();
    j.Issue(0, Send(1, 64), At(10));
    j.Issue(1, Recv(0, 32), At(11));
    if (!is_known) j.member(0).p2p_started = j.member(0).p2p_entered += 7;
    const std::vector<Verdict> early = Diagnose(j.state, At(11.5), Limits());
    ASSERT_EQ(early.size(), is_known ? 1u : 0u);
    const std::vector<Verdict> late = Diagnose(j.state, At(70), Limits());
    ASSERT_EQ(late.size(), 1u);
    EXPECT_EQ(late[0].cause, Cause::kUnmatchedP2p);
    EXPECT_EQ(late[0].at_once, is_known);
  }
}

TEST(WaitSentencesTest, OneSentenceReportsACycleThroughThreeLibraries) {
  JobBuilder j(3);
  j.Enter({0}, At(10));
  j.AddCommunicator(7, "control", {0, 1, 2});
  j.comm().kind = CommKind::kGloo;
  j.Enter({1}, At(12));
  CallArgs barrier;
  barrier.op = Op::kMPI_Barrier;
  j.AddCommunicator(9, "MPI_COMM_WORLD", {0, 1, 2});
  j.Enter({2}, At(14), barrier);
  const std::vector<Verdict> verdicts = Diagnose(j.state, At(70), Limits());
  ASSERT_FALSE(verdicts.empty());
  EXPECT_EQ(verdicts[0].cause, Cause::kDeadlock);
  EXPECT_EQ(verdicts[0].culprits.size(), 3u);
  EXPECT_EQ(verdicts[0].summary,
            "ranks 0-2 wait for each other: rank 1 waits in AllReduce #0 on gloo communicator "
            "\"control\" for ranks 0,2, and rank 2 waits in MPI_Barrier #0 on communicator "
            "\"MPI_COMM_WORLD\" for ranks 0-1, and rank 0 waits in AllReduce #0 on communicator "
            "\"dp\" for ranks 1-2; 3 ranks have waited 60 s");
}

}  // namespace
}  // namespace rollcall
