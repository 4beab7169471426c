// SPDX-License-Identifier: Apache-2.0
#include "daemon/model/sent_messages.h"

#include <gtest/gtest.h>

#include "interpose/segment_messages.h"
#include "message_job.h"

namespace rollcall {
namespace {

using segment::kAnySource;
using segment::kAnyTag;
using segment::kMixedTags;

bool MayHave(MessageJob* job, int rank, int tag) {
  job->Judge();
  SentMessages sent(job->job.comm());
  return sent.MayHave(job->counts(rank), rank, tag);
}

TEST(SentMessagesTest, AMessageThatWasNotReceivedMayCome) {
  MessageJob job(3);
  job.Sent(1, 0, 7, 3);
  job.Received(0, 1, 7, 2);
  EXPECT_TRUE(MayHave(&job, 0, 7));
  EXPECT_TRUE(MayHave(&job, 0, kAnyTag));
  EXPECT_FALSE(MayHave(&job, 0, 8)) << "another tag";
  EXPECT_FALSE(MayHave(&job, 2, 7)) << "another receiver";
  job.Received(0, 1, 7, 1);
  EXPECT_FALSE(MayHave(&job, 0, 7));
}

TEST(SentMessagesTest, CountsThatAreNotCompleteMayHoldIt) {
  MessageJob mixed(3);
  mixed.Sent(1, 0, kMixedTags, 3);
  EXPECT_TRUE(MayHave(&mixed, 0, 7));
  EXPECT_FALSE(MayHave(&mixed, 2, 7)) << "another receiver";
  MessageJob lost(3);
  lost.counts(2).lost = true;
  EXPECT_TRUE(MayHave(&lost, 0, 7));
}

// Each rank serves requests of any rank, and has exchanged messages with its neighbours.
size_t LookedAtByServers(int ranks) {
  MessageJob job(ranks);
  for (int rank = 0; rank < ranks; ++rank) {
    const int next = (rank + 1) % ranks;
    job.Sent(rank, next, 7, 1);
    job.Received(next, rank, 7, 1);
    job.Receive(rank, kAnySource, 7, 10);
  }
  job.Judge();
  SentMessages sent(job.job.comm());
  for (int rank = 0; rank < ranks; ++rank) {
    EXPECT_FALSE(sent.MayHave(job.counts(rank), rank, 7));
  }
  return sent.looked_at();
}

TEST(SentMessagesTest, CostInProportionToTheCounts) {
  EXPECT_LE(LookedAtByServers(200), 10 * LookedAtByServers(20));
}

}  // namespace
}  // namespace rollcall
