// SPDX-License-Identifier: Apache-2.0
// Counts of MPI's messages as no library sends them: the daemon takes what can be, and what it
// costs to judge them grows no faster than their number.
#include <gtest/gtest.h>

#include <ctime>
#include <functional>
#include <ostream>
#include <string>

#include "daemon/diagnosis/diagnose.h"
#include "daemon/jobs/daemon_counters.h"
#include "daemon/jobs/job_store.h"
#include "daemon/model/client_limits.h"
#include "interpose/segment_messages.h"
#include "job_store_ticks.h"
#include "rollcall/v1/agent.pb.h"

namespace rollcall {
namespace {

using segment::kAnySource;
using segment::kAnyTag;
using segment::kMixedTags;

constexpr int64_t kSecondNs = 1'000'000'000;
constexpr int64_t kStartNs = 1'700'000'000 * kSecondNs;
constexpr int kMost = limits::kPeersOfUpdate;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr double kMostSeconds = 10;
#else
constexpr double kMostSeconds = 1;
#endif

void Add(v1::MessageCounts* counts, int peer, int tag, uint32_t issued, uint32_t awaited) {
  counts->add_peer(peer);
  counts->add_tag(tag);
  counts->add_sends(issued);
  counts->add_receives(issued);
  counts->add_sends_awaited(awaited);
  counts->add_receives_awaited(awaited);
}

v1::CommUpdate* AddWaiting(v1::Tick* tick, int rank, int size) {
  v1::CommUpdate* comm = AddComm(tick, 5, rank, size);
  comm->set_p2p_waiting_since_ns(kStartNs);
  return comm;
}

TEST(HostileMessagesTest, EachPeerAndTagCountsOnceAndOnlyIfItCanBe) {
  DaemonCounters counters;
  JobStore store("unnamed", JobStoreLimits(), &counters);
  v1::Tick tick = MakeTick(1);
  v1::MessageCounts* counts = AddWaiting(&tick, 0, 4)->mutable_messages();
  for (const auto& [peer, tag] : {std::pair(2, 7), {1, 8}, {2, 7}, {-2, 7}, {1, -3}, {1, 7}}) {
    Add(counts, peer, tag, static_cast<uint32_t>(counts->peer_size()), 0);
  }
  store.Apply("node", tick, kStartNs);
  const JobState state = store.Get(kJob);
  const MessageCounts& kept = *OnlyMember(state).messages;
  std::string all;
  for (const PeerMessages& with : kept.by_peer) {
    all += std::to_string(with.peer) + "/" + std::to_string(with.tag) + ":" +
           std::to_string(with.sends) + " ";
  }
  EXPECT_EQ(all, "1/7:5 1/8:1 2/7:0 ");
  EXPECT_TRUE(kept.lost);
  EXPECT_EQ(counters.Get().dropped[static_cast<size_t>(Dropped::kNumbers)], 1u);
}

struct Case {
  const char* name;
  int size;  // of the communicator; the ranks beyond kRanks have no report
  // The entry `i` of a rank.
  std::function<void(v1::MessageCounts*, int rank, int i)> add;
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

constexpr int kRanks = 512;
// Sends that count as received: the counts are modulo 2^32.
constexpr uint32_t kTaken = 0x9000'0000;

const Case kCases[] = {
    {"one_message_of_any_source_again_and_again", kRanks,
     [](v1::MessageCounts* counts, int rank, int i) {
       if (i % 2 == 0) return Add(counts, kAnySource, kAnyTag, 1, 1);
       Add(counts, (rank + i) % kRanks, i, kTaken, 0);
     }},
    {"any_source_with_each_tag", kRanks,
     [](v1::MessageCounts* counts, int rank, int i) {
       if (i % 2 == 0) return Add(counts, kAnySource, i, 1, 1);
       Add(counts, (rank + i) % kRanks, i - 1, kTaken, 0);
     }},
    {"tags_that_cannot_be", kRanks,
     [](v1::MessageCounts* counts, int rank, int i) {
       if (i % 2 == 0) return Add(counts, kAnySource, -3 - i, 1, 1);
       Add(counts, (rank + i) % kRanks, i, kTaken, 0);
     }},
    {"many_tags_of_one_peer_and_mixed_ones", kRanks,
     [](v1::MessageCounts* counts, int rank, int i) {
       Add(counts, (rank + 1) % kRanks, i == 0 ? kMixedTags : 2 * i + rank % 2, 1, 2);
     }},
    {"each_rank_waits_for_many", kRanks,
     [](v1::MessageCounts* counts, int rank, int i) {
       Add(counts, (rank + i + 1) % kRanks, 7, 1, 2);
     }},
    {"ranks_that_do_not_report", 200'000,
     [](v1::MessageCounts* counts, int rank, int i) {
       Add(counts, kRanks + rank * kMost + i, 7, 1, 1);
     }},
};

class HostileMessageCosts : public testing::TestWithParam<Case> {};

TEST_P(HostileMessageCosts, AJobOfThemIsJudgedInASecond) {
  const Case& c = GetParam();
  DaemonCounters counters;
  JobStore store("unnamed", JobStoreLimits(), &counters);
  for (int rank = 0; rank < kRanks; ++rank) {
    v1::Tick tick = MakeTick(rank);
    v1::MessageCounts* counts = AddWaiting(&tick, rank, c.size)->mutable_messages();
    for (int i = 0; i < kMost; ++i) c.add(counts, rank, i);
    store.Apply("node", tick, kStartNs);
  }
  const JobState state = store.Get(kJob);
  const std::clock_t begun = std::clock();
  Diagnose(state, kStartNs + 100 * kSecondNs, Limits());
  const double seconds = static_cast<double>(std::clock() - begun) / CLOCKS_PER_SEC;
  RecordProperty("seconds", std::to_string(seconds));
  EXPECT_LT(seconds, kMostSeconds) << "of CPU time";
}

INSTANTIATE_TEST_SUITE_P(All, HostileMessageCosts, testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace rollcall
