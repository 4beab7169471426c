// SPDX-License-Identifier: Apache-2.0
// Calls between two ranks: sends and receives, and one-sided ones.
#include <gtest/gtest.h>

#include <vector>

#include "daemon/diagnosis/diagnose.h"
#include "rule_cases.h"

namespace rollcall {
namespace {

CallArgs OneSided(Op op, int peer) { return {op, kNoDtype, kNoReduction, peer, 0}; }

// clang-format off
const RuleCase kCases[] = {
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
};
// clang-format on

void Raise(int rank, double at, const char* error, JobBuilder* job) {
  job->EndUnseen(rank, At(at));
  job->process(rank).error = error;
  job->process(rank).error_ns = At(at);
}

// A pipeline whose rank 1 raises that error; rank 2 then loses its peer, and rank 3 waits for it.
Verdict OfBrokenPipeline(const char* error) {
  JobBuilder j(4);
  j.Finish(4);
  j.Issue(3, Recv(2), At(10));
  if (*error != '\0') Raise(1, 11, error, &j);
  Raise(2, 11.5, "RuntimeError: [pair.cc:534] Connection closed by peer [127.0.0.1]:1025", &j);
  const std::vector<Verdict> verdicts = Diagnose(j.state, At(70), Limits());
  EXPECT_FALSE(verdicts.empty());
  return verdicts.empty() ? Verdict() : verdicts[0];
}

TEST(LostPeerTest, TheRankThatFailedOfItselfIsTheCulprit) {
  const Verdict v = OfBrokenPipeline("ValueError: bad label at train.py:31");
  EXPECT_EQ(v.cause, Cause::kRankExited) << v.summary;
  EXPECT_EQ(CulpritRanks(v.culprits), Ranks{1}) << v.summary;
}

TEST(LostPeerTest, ARankThatHasOnlyLostItsPeerIsNotCertainlyWrong) {
  const Verdict v = OfBrokenPipeline("");
  EXPECT_EQ(CulpritRanks(v.culprits), Ranks{2}) << v.summary;
  EXPECT_EQ(v.certainty, Certainty::kLikely);
}

// Rank 0 waits for a message that rank 1 has sent, and rank 1 has gone on.
Verdict OfSentMessage(CommKind kind) {
  JobBuilder j(3, false);
  j.Finish(4);
  j.comm().kind = kind;
  j.Issue(1, Send(0), At(9));
  j.CompleteP2p({1});
  j.Issue(0, Recv(1), At(10));
  j.Block({0}, At(10));
  const std::vector<Verdict> verdicts = Diagnose(j.state, At(70), Limits());
  EXPECT_FALSE(verdicts.empty());
  return verdicts.empty() ? Verdict() : verdicts[0];
}

TEST(DroppedMessageTest, ASenderThatHasGoneOnMayNotHaveKeptItsRequest) {
  const Verdict v = OfSentMessage(CommKind::kGloo);
  EXPECT_EQ(v.cause, Cause::kStalledInFlight) << v.summary;
  EXPECT_EQ(CulpritRanks(v.culprits), Ranks{1}) << v.summary;
  EXPECT_EQ(v.certainty, Certainty::kLikely);
  EXPECT_EQ(v.advice.front().id, "lost-message");
}

TEST(DroppedMessageTest, NcclKeepsAMessageWithoutItsRequest) {
  EXPECT_TRUE(OfSentMessage(CommKind::kNccl).culprits.empty());
}

constexpr char kReceives[] = " futex c10d::Work::wait distributed_c10d.recv learn.collect ";
constexpr char kSends[] = " futex c10d::Work::wait distributed_c10d.send learn.run ";

// Rank 1 waits in a collective for ranks 0 and 2, which stand there. Their messages are not
// recorded: an older library leaves out those with tags.
Verdict OfRanksThatStandIn(const char* rank_0, const char* rank_2,
                           CommKind kind = CommKind::kGloo) {
  JobBuilder j(3, false);
  j.Finish(4);
  j.comm().kind = kind;
  j.Enter({1}, At(9));
  j.Block({1}, At(10));
  for (const auto& [rank, functions] : {std::pair(0, rank_0), std::pair(2, rank_2)}) {
    j.process(rank).place.functions = functions;
    j.process(rank).stacks_ns = At(60);
  }
  const std::vector<Verdict> verdicts = Diagnose(j.state, At(70), Limits());
  EXPECT_FALSE(verdicts.empty());
  return verdicts.empty() ? Verdict() : verdicts[0];
}

TEST(MessagesOfGlooTest, RanksBetweenTwoTagsAreNotCertainToHaveLeftOutACall) {
  const Verdict v = OfRanksThatStandIn(kReceives, kSends);
  EXPECT_EQ(v.certainty, Certainty::kLikely) << v.summary;
  EXPECT_EQ(v.missing_evidence.back(),
            "whether the messages of ranks 0,2 have the tags that their peers wait for: they are "
            "not recorded");
  EXPECT_EQ(OfRanksThatStandIn(kReceives, kSends, CommKind::kNccl).certainty, Certainty::kCertain);
}

TEST(MessagesOfGlooTest, TheRankThatIsInNoMessageHoldsUpTheOther) {
  const Verdict v = OfRanksThatStandIn(kReceives, " clock_nanosleep learn.rest ");
  EXPECT_EQ(CulpritRanks(v.culprits), Ranks{2}) << v.summary;
  EXPECT_EQ(v.certainty, Certainty::kLikely);
}

TEST(MessagesOfGlooTest, TheMessagesWithinAMonitoredBarrierAreNoneOfTheProgram) {
  constexpr char kMonitored[] =
      " futex c10d::ProcessGroupGloo::RecvWork::wait c10d::ProcessGroupGloo::monitoredBarrier ";
  EXPECT_EQ(OfRanksThatStandIn(kMonitored, kMonitored).certainty, Certainty::kCertain);
}

class PeerRulesTest : public testing::TestWithParam<RuleCase> {};

TEST_P(PeerRulesTest, Blames) { ExpectVerdict(GetParam()); }

INSTANTIATE_TEST_SUITE_P(Rules, PeerRulesTest, testing::ValuesIn(kCases), NameOfCase);

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

}  // namespace
}  // namespace rollcall
