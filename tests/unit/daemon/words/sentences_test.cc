#include "daemon/words/sentences.h"
#include "daemon/words/terms.h"
#include "daemon/words/terms.h"

#include <gtest/gtest.h>

#include "daemon/model/shapes.h"
#include "job_builder.h"

namespace rollcall {
namespace {

Culprit Rank3() {
  Culprit culprit;
  culprit.process = 3;
  culprit.rank = 3;
  culprit.host = "node-17";
  culprit.pid = 4121;
  return culprit;
}

Verdict Make(Cause cause, CallArgs call = AllReduce(), uint64_t position = 8812) {
  Verdict v;
  v.cause = cause;
  v.culprits = {Rank3()};
  v.communicator = kDp;
  v.communicator_name = "dp";
  v.communicator_size = 64;
  v.position = position;
  v.call = call;
  for (int rank = 0; rank < 64; ++rank) {
    if (rank != 3) v.waiting_ranks.push_back(rank);
  }
  v.waited_ns = 48 * kSecondNs;
  return v;
}

TEST(SentencesTest, RankLists) {
  EXPECT_EQ(RankList({}), "");
  EXPECT_EQ(RankList({3}), "3");
  EXPECT_EQ(RankList({4, 2, 0, 1, 2}), "0-2,4");
  EXPECT_EQ(RanksInWords({3}), "rank 3");
  EXPECT_EQ(RanksInWords({-1}), "rank -1");
  EXPECT_EQ(RanksInWords({0, 1, 2, 63}), "ranks 0-2,63");
}

TEST(SentencesTest, Durations) {
  EXPECT_EQ(DurationInWords(-5), "0 s");
  EXPECT_EQ(DurationInWords(450'000'000), "0.4 s");
  EXPECT_EQ(DurationInWords(48 * kSecondNs), "48 s");
  EXPECT_EQ(DurationInWords(250 * kSecondNs), "4 min 10 s");
  EXPECT_EQ(DurationInWords(11100 * kSecondNs), "3 h 5 min");
}

TEST(SentencesTest, Calls) {
  EXPECT_EQ(CallInWords(AllReduce()), "AllReduce(float32 x 1048576, sum)");
  EXPECT_EQ(CallInWords(Broadcast()), "Broadcast(float32 x 128, root 0)");
  CallArgs told = AllReduce();
  told.shape = InternShape("[1024, 1024]");
  EXPECT_EQ(CallInWords(told), "AllReduce(float32 x 1048576 as [1024, 1024], sum)");
  EXPECT_EQ(CallInWords({Op::kMPI_Bcast, kNoDtype, kNoReduction, 2, 64}),
            "MPI_Bcast(64 bytes, root 2)");
  EXPECT_EQ(CallInWords({Op::kMPI_Barrier}), "MPI_Barrier()");
  EXPECT_EQ(CallInWords({static_cast<Op>(200), 77, 9, kNoPeer, 1}),
            "call with op code 200(dtype 77 x 1, reduction 9)");
}

TEST(SentencesTest, MissingRank) {
  EXPECT_EQ(SummaryOf(Make(Cause::kMissingRank)),
            "rank 3 (node-17, pid 4121) never entered AllReduce #8812 on communicator \"dp\"; 63 "
            "ranks have waited 48 s");
}

TEST(SentencesTest, NamelessCommunicatorsGoByTheirId) {
  Verdict v = Make(Cause::kMissingRank);
  v.communicator_name.clear();
  EXPECT_NE(SummaryOf(v).find("on communicator a91f0c22;"), std::string::npos);
}

TEST(SentencesTest, SeveralCulpritsOnSeveralHosts) {
  Verdict v = Make(Cause::kMissingRank);
  v.culprits.push_back(Rank3());
  v.culprits[1].rank = 4;
  v.culprits[1].pid = 4122;
  EXPECT_EQ(SummaryOf(v).substr(0, 45), "ranks 3-4 (node-17, pids 4121 4122) never ent");
  v.culprits[1].host = "node-18";
  EXPECT_EQ(SummaryOf(v).substr(0, 29), "ranks 3-4 (2 hosts) never ent");
}

TEST(SentencesTest, RankDied) {
  Verdict v = Make(Cause::kRankDied);
  v.culprits[0].ending = "killed by signal 9";
  EXPECT_EQ(SummaryOf(v).substr(0, 82),
            "rank 3 (node-17, pid 4121) died (killed by signal 9) before it entered AllReduce #");
  v.culprits[0].entered = 8813;
  EXPECT_NE(SummaryOf(v).find("died (killed by signal 9) inside AllReduce #8812 on"),
            std::string::npos);
}

TEST(SentencesTest, ARankOfWhichNobodyKnowsHowItEnded) {
  Verdict v = Make(Cause::kRankDied);
  v.culprits[0].ending = kEndedUnknown;
  EXPECT_EQ(SummaryOf(v).substr(0, 83),
            "rank 3 (node-17, pid 4121) ended (how is not known) before it entered AllReduce #88");
  v.culprits.push_back(v.culprits[0]);
  v.culprits[1].rank = 4;
  v.culprits[1].ending = "killed by signal 9";
  EXPECT_NE(SummaryOf(v).find(" ended before it entered"), std::string::npos) << SummaryOf(v);
}

TEST(SentencesTest, InitIncomplete) {
  EXPECT_EQ(SummaryOf(Make(Cause::kInitIncomplete, {Op::kCommInitRank}, 0)),
            "rank 3 (node-17, pid 4121) never joined communicator \"dp\" of 64 ranks "
            "(CommInitRank); 63 ranks have waited 48 s");
}

TEST(SentencesTest, StalledWithoutCulprits) {
  Verdict v = Make(Cause::kStalledInFlight);
  v.culprits.clear();
  EXPECT_EQ(SummaryOf(v),
            "all 64 ranks of communicator \"dp\" have entered AllReduce #8812, which does not "
            "finish; 63 ranks have waited 48 s");
}

TEST(SentencesTest, MismatchSetsBothCallsSideBySide) {
  Verdict v = Make(Cause::kOperationMismatch);
  v.culprits[0].call = Broadcast();
  v.mismatched_fields = {"operation"};
  v.waiting_ranks.clear();
  EXPECT_EQ(SummaryOf(v),
            "rank 3 (node-17, pid 4121) called Broadcast(float32 x 128, root 0) where the others "
            "called AllReduce(float32 x 1048576, sum): call #8812 on communicator \"dp\"");
}

TEST(SentencesTest, ATieHasNoOthers) {
  Verdict v = Make(Cause::kArgumentMismatch);
  v.culprits[0].call = AllReduce(7);
  v.culprits.push_back(Rank3());
  v.culprits[1].rank = 2;
  v.culprits[1].call = AllReduce();
  v.waiting_ranks.clear();
  EXPECT_EQ(SummaryOf(v),
            "rank 3 (node-17, pid 4121) called AllReduce(float32 x 7, sum) where rank 2 (node-17, "
            "pid 4121) called AllReduce(float32 x 1048576, sum): call #8812 on communicator "
            "\"dp\"");
}

Verdict Parted(DivergenceKind kind, std::vector<AlignedCall> histories) {
  Verdict v = Make(Cause::kOperationMismatch, AllReduce(), 3);
  v.culprits[0].call = Broadcast();
  v.divergence = kind;
  v.histories = std::move(histories);
  return v;
}

TEST(SentencesTest, HowHistoriesPart) {
  const AlignedCall same = {2, 2, AllReduce(), AllReduce()};
  const AlignedCall extra = {3, 3, {}, Broadcast()};
  EXPECT_EQ(
      SummaryOf(Parted(DivergenceKind::kExtra, {same, extra, {3, 4, AllReduce(), AllReduce()}})),
      "rank 3 (node-17, pid 4121) issued one extra Broadcast(float32 x 128, root 0) at #3 on "
      "communicator \"dp\", where the others called AllReduce(float32 x 1048576, sum); 63 "
      "ranks have waited 48 s");
  EXPECT_EQ(
      SummaryOf(Parted(DivergenceKind::kExtra, {same, extra, extra, same})),
      "rank 3 (node-17, pid 4121) issued 2 extra calls, the first Broadcast(float32 x 128, root "
      "0) at #3 on communicator \"dp\", where the others called AllReduce(float32 x 1048576, "
      "sum); 63 ranks have waited 48 s");
  EXPECT_EQ(SummaryOf(Parted(DivergenceKind::kSkipped, {same, {3, 3, AllReduce(), {}}})),
            "rank 3 (node-17, pid 4121) left out AllReduce(float32 x 1048576, sum) at #3 on "
            "communicator \"dp\" and called Broadcast(float32 x 128, root 0); 63 ranks have waited "
            "48 s");
  EXPECT_EQ(
      SummaryOf(Parted(DivergenceKind::kSwapped, {same})),
      "rank 3 (node-17, pid 4121) made the same calls as the others in another order, from #3 on "
      "communicator \"dp\" on: Broadcast(float32 x 128, root 0) where they called "
      "AllReduce(float32 x 1048576, sum); 63 ranks have waited 48 s");
}

}  // namespace
}  // namespace rollcall
