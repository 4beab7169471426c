// SPDX-License-Identifier: Apache-2.0
// MPI's messages, by the counts of both ends: whose message is lacking, and what a wait for any of
// several messages is worth.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "daemon/model/message_counts.h"
#include "interpose/segment_messages.h"
#include "message_job.h"

namespace rollcall {
namespace {

using segment::kAnySource;
using segment::kAnyTag;
using segment::kMixedTags;

struct Case {
  const char* name;
  int ranks;
  std::function<void(MessageJob*)> happens;
  Cause cause;
  Ranks blamed;  // empty if there is no verdict
  Certainty certainty;
};

const Case kCases[] = {
    {"a_receive_without_its_send",
     3,
     [](MessageJob* job) {
       job->Sent(1, 0, 7, 4);
       job->Received(0, 1, 7, 4);
       job->Receive(0, 1, 7, 10);
     },
     Cause::kUnmatchedP2p,
     {1},
     Certainty::kLikely},
    {"a_send_without_its_receive",
     3,
     [](MessageJob* job) {
       job->Sent(0, 1, 7, 2);
       job->Received(1, 0, 7, 2);
       job->Send(0, 1, 7, 10);
     },
     Cause::kUnmatchedP2p,
     {1},
     Certainty::kLikely},
    {"messages_of_another_tag_are_none",
     2,
     [](MessageJob* job) {
       job->Sent(1, 0, 8, 5);
       job->Receive(0, 1, 7, 10);
     },
     Cause::kUnmatchedP2p,
     {1},
     Certainty::kLikely},
    {"an_early_message_is_no_wait",
     2,
     [](MessageJob* job) { job->Sent(1, 0, 8, 5); },
     Cause::kUnmatchedP2p,
     {},
     Certainty::kCertain},
    {"counts_are_as_large_as_they_can_be",
     2,
     [](MessageJob* job) {
       job->Sent(1, 0, 7, 0xfffffffe);
       job->Received(0, 1, 7, 0xfffffffe);
       job->Receive(0, 1, 7, 10);
     },
     Cause::kUnmatchedP2p,
     {1},
     Certainty::kLikely},
    {"who_waits_for_messages_that_are_not_counted_is_not_to_blame",
     3,
     [](MessageJob* job) {
       job->counts(2).lost = true;
       job->Receive(0, 1, 7, 10);
       job->Receive(1, 2, 7, 10);
     },
     Cause::kUnmatchedP2p,
     {},
     Certainty::kCertain},
    {"two_that_send_first",
     2,
     [](MessageJob* job) {
       job->Send(0, 1, 7, 10);
       job->Send(1, 0, 7, 10);
     },
     Cause::kDeadlock,
     {0, 1},
     Certainty::kLikely},
    {"a_send_and_a_receive_of_different_tags",
     2,
     [](MessageJob* job) {
       job->Send(0, 1, 7, 10);
       job->Receive(1, 0, 8, 10);
     },
     Cause::kUnmatchedP2p,
     {0, 1},
     Certainty::kLikely},
    {"of_several_messages_the_receive_is_what_lacks",
     3,
     [](MessageJob* job) {
       job->Send(0, 1, 7, 10, Op::kMPI_Waitall);
       job->Receive(0, 2, 7, 10, Op::kMPI_Waitall);
     },
     Cause::kUnmatchedP2p,
     {2},
     Certainty::kLikely},
    {"one_of_several_sends_is_not_known",
     3,
     [](MessageJob* job) {
       job->Send(0, 1, 7, 10, Op::kMPI_Waitall);
       job->Send(0, 2, 7, 10, Op::kMPI_Waitall);
     },
     Cause::kUnmatchedP2p,
     {1, 2},
     Certainty::kLikely},
    {"tags_that_are_counted_together",
     2,
     [](MessageJob* job) {
       job->Sent(1, 0, kMixedTags, 5);
       job->Received(0, 1, kMixedTags, 5);
       job->Receive(0, 1, 900, 10);
     },
     Cause::kUnmatchedP2p,
     {1},
     Certainty::kLikely},
    {"tags_that_are_counted_together_may_hold_it",
     2,
     [](MessageJob* job) {
       job->Sent(1, 0, kMixedTags, 6);
       job->Received(0, 1, kMixedTags, 5);
       job->Receive(0, 1, 900, 10);
     },
     Cause::kUnmatchedP2p,
     {},
     Certainty::kCertain},
    {"a_peer_whose_messages_are_not_all_counted",
     2,
     [](MessageJob* job) {
       job->counts(1).lost = true;
       job->Receive(0, 1, 7, 10);
     },
     Cause::kUnmatchedP2p,
     {},
     Certainty::kCertain},
    {"a_receive_that_was_given_up",
     2,
     [](MessageJob* job) {
       job->counts(0).cancelled = true;
       job->Receive(0, 1, 7, 10);
     },
     Cause::kUnmatchedP2p,
     {},
     Certainty::kCertain},
    {"any_tag_of_a_rank_that_sent_none",
     2,
     [](MessageJob* job) {
       job->Sent(1, 0, 3, 2);
       job->Received(0, 1, 3, 2);
       job->Receive(0, 1, kAnyTag, 10);
     },
     Cause::kUnmatchedP2p,
     {1},
     Certainty::kLikely},
    {"a_receive_from_any_rank_takes_it",
     3,
     [](MessageJob* job) {
       job->With(1, kAnySource, 7)->receives = 1;
       job->Send(0, 1, 7, 10);
     },
     Cause::kUnmatchedP2p,
     {},
     Certainty::kCertain},
    // It was there before, and may have taken the message that the later receive waits for.
    {"an_earlier_receive_from_any_rank_may_have_taken_the_message",
     3,
     [](MessageJob* job) {
       job->Post(0, kAnySource, 7, 1);
       job->Sent(1, 0, 7, 1);
       job->Receive(0, 1, 7, 10);
     },
     Cause::kUnmatchedP2p,
     {},
     Certainty::kCertain},
    {"an_earlier_receive_of_any_rank_and_tag_may_have_taken_it",
     3,
     [](MessageJob* job) {
       job->Post(0, kAnySource, kAnyTag, 1);
       job->Sent(1, 0, 7, 3);
       job->Received(0, 1, 7, 2);
       job->Receive(0, 1, 7, 10);
     },
     Cause::kUnmatchedP2p,
     {},
     Certainty::kCertain},
    {"an_earlier_receive_of_another_tag_takes_nothing",
     3,
     [](MessageJob* job) {
       job->Post(0, kAnySource, 9, 1);
       job->Receive(0, 1, 7, 10);
     },
     Cause::kUnmatchedP2p,
     {1},
     Certainty::kLikely},
    // Whichever of both takes the next message: none was sent, and this one needs another.
    {"an_earlier_receive_from_any_rank_takes_nothing_of_a_rank_that_sent_nothing",
     3,
     [](MessageJob* job) {
       job->Post(0, kAnySource, 7, 1);
       job->Receive(0, 1, 7, 10);
     },
     Cause::kUnmatchedP2p,
     {1},
     Certainty::kLikely},
    {"one_of_several_receives_of_a_rank_lacks_its_send",
     3,
     [](MessageJob* job) {
       job->Sent(1, 0, 7, 6);
       job->Received(0, 1, 7, 4);
       job->Post(0, 1, 7, 2);
       job->Receive(0, 1, 7, 10, Op::kMPI_Waitall);
     },
     Cause::kUnmatchedP2p,
     {1},
     Certainty::kLikely},
    {"one_of_the_receives_of_several_ranks_lacks_its_send",
     4,
     [](MessageJob* job) {
       for (const int peer : {1, 2, 3}) job->Receive(0, peer, 7, 10, Op::kMPI_Waitall);
       for (const int peer : {1, 3}) job->Sent(peer, 0, 7, 1);
     },
     Cause::kUnmatchedP2p,
     {2},
     Certainty::kLikely},
    {"one_of_the_sends_to_several_ranks_lacks_its_receive",
     4,
     [](MessageJob* job) {
       for (const int peer : {1, 2, 3}) job->Send(0, peer, 7, 10, Op::kMPI_Waitall);
       for (const int peer : {1, 3}) job->Received(peer, 0, 7, 1);
     },
     Cause::kUnmatchedP2p,
     {2},
     Certainty::kLikely},
    {"a_send_that_lacks_its_receive_beside_receives_whose_sends_were_issued",
     4,
     [](MessageJob* job) {
       job->Send(0, 1, 7, 10, Op::kMPI_Waitall);
       for (const int peer : {2, 3}) job->Receive(0, peer, 7, 10, Op::kMPI_Waitall);
       for (const int peer : {2, 3}) job->Sent(peer, 0, 7, 1);
     },
     Cause::kUnmatchedP2p,
     {1},
     Certainty::kLikely},
    {"the_last_message_before_the_counts_wrap",
     2,
     [](MessageJob* job) {
       job->Sent(1, 0, 7, 0xfffffffe);
       job->Received(0, 1, 7, 0xfffffffd);
       job->Post(0, 1, 7, 1);
       job->Receive(0, 1, 7, 10, Op::kMPI_Waitall);
     },
     Cause::kUnmatchedP2p,
     {1},
     Certainty::kLikely},
    {"a_message_behind_the_wrap_of_the_counts",
     2,
     [](MessageJob* job) {
       job->Sent(1, 0, 7, 0xffffffff);
       job->Received(0, 1, 7, 0xffffffff);
       job->Post(0, 1, 7, 1);
       job->Receive(0, 1, 7, 10, Op::kMPI_Waitall);
     },
     Cause::kUnmatchedP2p,
     {1},
     Certainty::kLikely},
    // A rank that may yet send to a rank that waits for any one keeps its wait open.
    {"a_pool_at_work",
     4,
     [](MessageJob* job) {
       job->Receive(0, kAnySource, 7, 10);
       for (const int idle : {1, 3}) job->Receive(idle, 0, 8, 10);
     },
     Cause::kUnmatchedP2p,
     {},
     Certainty::kCertain},
    {"a_pool_of_which_one_has_left",
     4,
     [](MessageJob* job) {
       job->Receive(0, kAnySource, 7, 10);
       for (const int idle : {1, 2}) job->Receive(idle, 0, 8, 10);
       job->job.Exit(3, At(11));
     },
     Cause::kRankExited,
     {3},
     Certainty::kLikely},
    {"a_pool_in_which_all_wait",
     3,
     [](MessageJob* job) {
       job->Receive(0, kAnySource, 7, 10);
       for (const int idle : {1, 2}) job->Receive(idle, 0, 8, 10);
     },
     Cause::kDeadlock,
     {0, 1, 2},
     Certainty::kLikely},
    {"any_of_two_requests_one_of_which_may_come",
     3,
     [](MessageJob* job) {
       job->Receive(0, 1, 7, 10, Op::kMPI_Waitany);
       job->Receive(0, 2, 7, 10, Op::kMPI_Waitany);
       job->job.Exit(1, At(11));
     },
     Cause::kUnmatchedP2p,
     {},
     Certainty::kCertain},
    {"any_rank_may_be_this_one",
     2,
     [](MessageJob* job) { job->Receive(0, kAnySource, 7, 10); },
     Cause::kUnmatchedP2p,
     {1},
     Certainty::kLikely},
};

class MessageRuleTest : public testing::TestWithParam<Case> {};

TEST_P(MessageRuleTest, Blames) {
  const Case& c = GetParam();
  MessageJob job(c.ranks);
  c.happens(&job);
  const std::vector<Verdict> verdicts = job.Judge();
  if (c.blamed.empty()) {
    EXPECT_TRUE(verdicts.empty()) << verdicts[0].summary;
    return;
  }
  ASSERT_FALSE(verdicts.empty());
  Ranks blamed = Blamed(verdicts[0]);
  std::sort(blamed.begin(), blamed.end());
  EXPECT_EQ(verdicts[0].cause, c.cause) << verdicts[0].summary;
  EXPECT_EQ(blamed, c.blamed) << verdicts[0].summary;
  EXPECT_EQ(verdicts[0].certainty, c.certainty) << verdicts[0].summary;
}

INSTANTIATE_TEST_SUITE_P(Messages, MessageRuleTest, testing::ValuesIn(kCases),
                         [](const auto& row) { return std::string(row.param.name); });

TEST(MessageCountsTest, Wrap) {
  EXPECT_TRUE(HasReached(2, 0xffffffff));
  EXPECT_FALSE(HasReached(0xffffffff, 2));
  EXPECT_TRUE(HasReached(7, 7));
}

// Its sender has issued it, and MPI may need a call of the sender to move it.
TEST(MessageRulesTest, AMessageOfWhichBothEndsAreIssuedIsPossiblyStalled) {
  MessageJob job(3);
  job.Sent(2, 1, 7, 1);
  job.Receive(1, 2, 7, 10);
  job.Receive(0, 1, 7, 10);  // waits for a rank that waits
  const std::vector<Verdict> verdicts = job.Judge();
  ASSERT_FALSE(verdicts.empty());
  EXPECT_EQ(verdicts[0].cause, Cause::kStalledInFlight) << verdicts[0].summary;
  EXPECT_EQ(verdicts[0].certainty, Certainty::kPossible);
  EXPECT_TRUE(verdicts[0].culprits.empty()) << verdicts[0].summary;
}

TEST(MessageWordsTest, TheEvidenceCountsByTag) {
  MessageJob job(2);
  job.Sent(1, 0, 8, 5);
  job.Receive(0, 1, 7, 10);
  const std::vector<Verdict> verdicts = job.Judge();
  ASSERT_FALSE(verdicts.empty());
  const std::vector<std::string>& lines = verdicts[0].evidence;
  EXPECT_NE(
      std::find(
          lines.begin(), lines.end(),
          "rank 0: waits for message #1 with tag 7; rank 1 has sent it 0, and 5 with tag 8 that it "
          "has not received"),
      lines.end())
      << testing::PrintToString(lines);
  EXPECT_EQ(verdicts[0].summary,
            "rank 1 (node-1, pid 4001) never issued the send with the tag of MPI_Recv from rank "
            "1 of communicator \"dp\"; 1 rank has waited 60 s");
}

TEST(MessageWordsTest, ATieNamesWhatEachSideLacksWhicheverWaitsLonger) {
  for (const int later : {0, 1}) {
    MessageJob job(2);
    job.Send(0, 1, 8, later == 0 ? 10 : 11);
    job.Receive(1, 0, 7, later == 1 ? 10 : 11);
    const Verdict verdict = job.Judge().front();
    EXPECT_TRUE(Says(verdict.evidence,
                     "rank 0: waits for message #1 with tag 8; rank 1 has begun to receive 0"));
    EXPECT_TRUE(Says(verdict.evidence,
                     "rank 1: waits for message #1 with tag 7; rank 0 has sent it 0, and 1 with "
                     "tag 8 that it has not received"));
  }
}

// A learner on gloo, rank 0, has the rollouts of some actors and waits for that of rank 1.
MessageJob LearnerAndActors(int actors, Op op = Op::kRecv) {
  MessageJob job(actors + 1);
  job.job.comm().kind = CommKind::kGloo;
  for (int actor = 2; actor <= actors; ++actor) {
    job.Sent(actor, 0, 7, 1);
    job.Received(0, actor, 7, 1);
  }
  job.Receive(0, 1, 7, 10, op);
  return job;
}

TEST(MessagesOfGlooTest, TheRankThatSendsWithATagOfItsOwnIsToBlame) {
  MessageJob job = LearnerAndActors(3);
  job.Send(1, 0, 8, 11, Op::kSend);
  const Verdict verdict = job.Judge().front();
  EXPECT_EQ(verdict.cause, Cause::kUnmatchedP2p);
  EXPECT_EQ(CulpritRanks(verdict.culprits), Ranks{1});
  EXPECT_EQ(verdict.certainty, Certainty::kLikely);
  EXPECT_EQ(verdict.mismatched_fields, std::vector<std::string>{"tag"});
  EXPECT_TRUE(Says({verdict.summary}, "never issued the send with the tag of Recv from rank 1"))
      << verdict.summary;
  EXPECT_EQ(verdict.advice.front().id, "tags-differ");
}

TEST(MessagesOfGlooTest, TwoRanksWithDifferentTagsMayBothBeWrong) {
  MessageJob job = LearnerAndActors(1);
  job.Send(1, 0, 8, 11, Op::kSend);
  const Verdict verdict = job.Judge().front();
  EXPECT_EQ(CulpritRanks(verdict.culprits), (Ranks{0, 1}));
  EXPECT_EQ(verdict.certainty, Certainty::kLikely);
  EXPECT_TRUE(Says({verdict.summary}, "ranks 0-1 use different tags: ")) << verdict.summary;
}

// It sends without a tag, of which there are records.
TEST(MessagesOfGlooTest, AMessageWithoutATagIsNoneWithOne) {
  MessageJob job = LearnerAndActors(1);
  job.job.member(1).has_markers = true;
  job.job.Issue(1, Send(0), At(11));
  const Verdict verdict = job.Judge().front();
  EXPECT_EQ(verdict.cause, Cause::kUnmatchedP2p);
  EXPECT_EQ(verdict.mismatched_fields, std::vector<std::string>{"tag"}) << verdict.summary;
}

TEST(MessagesOfGlooTest, TheOneSenderThatHasNotSentIsToBlame) {
  for (const int actors : {2, 3}) {
    MessageJob job = LearnerAndActors(actors);
    const std::vector<int> all = actors == 2 ? std::vector<int>{1, 2} : std::vector<int>{1, 2, 3};
    job.job.Enter(all, At(11));
    job.job.Block(all, At(11));
    const Verdict verdict = job.Judge().front();
    EXPECT_EQ(verdict.cause, Cause::kUnmatchedP2p);
    EXPECT_EQ(CulpritRanks(verdict.culprits), actors == 2 ? (Ranks{0, 1}) : Ranks{1})
        << verdict.summary;
  }
}

// It has sent the message without a tag, and gloo moves it.
TEST(MessagesOfGlooTest, AReceiveFromAnyRankMayGetAMessageWithoutATag) {
  for (const bool sends : {false, true}) {
    MessageJob job(3);
    job.job.comm().kind = CommKind::kGloo;
    job.Receive(0, kAnySource, 0, 10, Op::kRecv);
    job.job.Enter({1}, At(11));
    job.job.Block({1}, At(11));
    if (sends) {
      job.job.Issue(2, Send(0), At(11));
    } else {
      job.job.Enter({2}, At(11));
      job.job.Block({2}, At(11));
    }
    const std::vector<Verdict> verdicts = job.Judge();
    const bool blames = !verdicts.empty() && verdicts[0].cause == Cause::kUnmatchedP2p;
    EXPECT_EQ(blames, !sends) << (verdicts.empty() ? "" : verdicts[0].summary);
  }
}

TEST(MessageWordsTest, TheMessageThatLacksHasItsNumber) {
  MessageJob job(2);
  job.Sent(1, 0, 7, 6);
  job.Received(0, 1, 7, 4);
  job.Post(0, 1, 7, 2);
  job.Receive(0, 1, 7, 10, Op::kMPI_Waitall);
  const std::vector<Verdict> verdicts = job.Judge();
  ASSERT_FALSE(verdicts.empty());
  EXPECT_TRUE(
      Says(verdicts[0].evidence, "rank 0: waits for message #7 with tag 7; rank 1 has sent it 6"))
      << testing::PrintToString(verdicts[0].evidence);
}

// It has posted three, and the first one that comes will do.
TEST(MessageWordsTest, AnyOfSeveralMessagesHasNoNumber) {
  MessageJob job(2);
  job.Sent(1, 0, 7, 4);
  job.Received(0, 1, 7, 4);
  job.Post(0, 1, 7, 2);
  job.Receive(0, 1, 7, 10, Op::kMPI_Waitany);
  const std::vector<Verdict> verdicts = job.Judge();
  ASSERT_FALSE(verdicts.empty());
  EXPECT_TRUE(
      Says(verdicts[0].evidence, "rank 0: waits for a message with tag 7; rank 1 has sent it 4"))
      << testing::PrintToString(verdicts[0].evidence);
}

}  // namespace
}  // namespace rollcall
