// SPDX-License-Identifier: Apache-2.0
// The rules for what a rank waits for besides absent ranks and its peers: GPUs that have not
// started a call, lost hosts, NCCL errors, concurrent use, teardown, creations.
#include <gtest/gtest.h>

#include <vector>

#include "daemon/diagnosis/diagnose.h"
#include "rule_cases.h"

namespace rollcall {
namespace {

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

// clang-format off
const RuleCase kCases[] = {
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

class WaitRulesTest : public testing::TestWithParam<RuleCase> {};

TEST_P(WaitRulesTest, Blames) { ExpectVerdict(GetParam()); }

INSTANTIATE_TEST_SUITE_P(Rules, WaitRulesTest, testing::ValuesIn(kCases), NameOfCase);

}  // namespace
}  // namespace rollcall
