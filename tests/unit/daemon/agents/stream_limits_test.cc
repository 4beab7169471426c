// SPDX-License-Identifier: Apache-2.0
#include "daemon/agents/stream_limits.h"

#include <gtest/gtest.h>

namespace rollcall {
namespace {

TEST(StreamLimitsTest, ThePortIsNotAPartOfAPeersAddress) {
  EXPECT_EQ(PeerHost("ipv4:10.0.0.7:53214"), "ipv4:10.0.0.7");
  EXPECT_EQ(PeerHost("ipv6:%5B2001:db8::1%5D:80"), "ipv6:[2001:db8::1]");
  EXPECT_EQ(PeerHost("ipv6:[2001:db8::1]:81"), "ipv6:[2001:db8::1]");
}

TEST(StreamLimitsTest, ThisMachineHasNoAddress) {
  for (const char* peer : {"ipv4:127.0.0.1:5", "ipv4:127.8.9.1:5", "ipv6:%5B::1%5D:5",
                           "ipv6:[::ffff:127.0.0.1]:5", "unix:/run/rollcall", "inproc:1", ""}) {
    EXPECT_EQ(PeerHost(peer), "") << peer;
  }
}

TEST(StreamLimitsTest, OnePeerCannotTakeTheStreamsOfOthers) {
  OpenStreams open({10, 2});
  EXPECT_EQ(open.Add("a"), StreamRefusal::kNone);
  EXPECT_EQ(open.Add("a"), StreamRefusal::kNone);
  EXPECT_EQ(open.Add("a"), StreamRefusal::kTooManyOfPeer);
  EXPECT_EQ(open.Add("b"), StreamRefusal::kNone);
  EXPECT_EQ(open.all(), 3u) << "a refused stream counts as none";
  open.Remove("a");
  EXPECT_EQ(open.Add("a"), StreamRefusal::kNone);
}

TEST(StreamLimitsTest, ThisMachinesStreamsHaveOnlyTheLimitOfAll) {
  OpenStreams open({3, 1});
  for (int i = 0; i < 3; ++i) EXPECT_EQ(open.Add(""), StreamRefusal::kNone);
  EXPECT_EQ(open.Add(""), StreamRefusal::kTooMany);
  EXPECT_EQ(open.Add("a"), StreamRefusal::kTooMany);
  open.Remove("");
  EXPECT_EQ(open.Add("a"), StreamRefusal::kNone);
}

TEST(StreamLimitsTest, APeerWithoutAStreamTakesNoMemory) {
  OpenStreams open({10, 2});
  for (int i = 0; i < 1000; ++i) {
    const std::string peer = std::to_string(i);
    EXPECT_EQ(open.Add(peer), StreamRefusal::kNone);
    open.Remove(peer);
  }
  EXPECT_EQ(open.peers(), 0u);
  EXPECT_EQ(open.all(), 0u);
}

}  // namespace
}  // namespace rollcall
