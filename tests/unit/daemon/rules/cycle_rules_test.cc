// SPDX-License-Identifier: Apache-2.0
// Ranks that wait for each other on several communicators and in several libraries, and those that
// only seem to.
#include <gtest/gtest.h>

#include <vector>

#include "daemon/diagnosis/diagnose.h"
#include "rule_cases.h"

namespace rollcall {
namespace {

// clang-format off
const RuleCase kCases[] = {
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
};
// clang-format on

class CycleRulesTest : public testing::TestWithParam<RuleCase> {};

TEST_P(CycleRulesTest, Blames) { ExpectVerdict(GetParam()); }

INSTANTIATE_TEST_SUITE_P(Rules, CycleRulesTest, testing::ValuesIn(kCases), NameOfCase);

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
