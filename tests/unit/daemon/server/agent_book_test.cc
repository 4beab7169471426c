// SPDX-License-Identifier: Apache-2.0
#include "daemon/server/agent_book.h"

#include <gtest/gtest.h>

namespace rollcall {
namespace {

constexpr int64_t kSecondNs = 1'000'000'000;
constexpr int64_t kNow = 1000 * kSecondNs;
constexpr int64_t kSilentAfter = 10 * kSecondNs;
constexpr int64_t kHours = 3 * 3600 * kSecondNs;

class AgentBookTest : public testing::Test {
 protected:
  AgentBook::Origin Tick(int64_t now_ns) { return book_.RecordTick(agent_, now_ns, now_ns); }

  const AgentName agent_ = {"node", "node/1", kSecondNs / 10, true};
  AgentBook book_;
};

// The stream of an agent can end before the daemon has applied its first tick.
TEST_F(AgentBookTest, KeepsAnAgentWhoseTickIsNotApplied) {
  const AgentBook::Origin first = Tick(kNow);
  book_.MarkSilent(kNow + 1, kSilentAfter);
  EXPECT_EQ(Tick(kNow + kSecondNs).agent, first.agent);
}

TEST_F(AgentBookTest, KeepsADisconnectedAgentForAWhile) {
  const AgentBook::Origin first = Tick(kNow);
  book_.Applied(first);
  book_.MarkSilent(kNow + 60 * kSecondNs, kSilentAfter);
  EXPECT_EQ(Tick(kNow + 61 * kSecondNs).agent, first.agent);
}

TEST_F(AgentBookTest, ForgetsAnAgentThatIsGoneForHours) {
  const AgentBook::Origin first = Tick(kNow);
  book_.Applied(first);
  book_.MarkSilent(kNow + kHours, kSilentAfter);
  EXPECT_NE(Tick(kNow + kHours + kSecondNs).agent, first.agent);
}

TEST_F(AgentBookTest, NeverForgetsAConnectedAgent) {
  book_.Connected(agent_);
  const AgentBook::Origin first = Tick(kNow);
  book_.Applied(first);
  book_.MarkSilent(kNow + kHours, kSilentAfter);
  EXPECT_EQ(Tick(kNow + kHours + kSecondNs).agent, first.agent);
}

TEST_F(AgentBookTest, TheNewestListSaysWhichAgentsAreUrgent) {
  const AgentBook::Origin tick = Tick(kNow);
  EXPECT_FALSE(tick.is_urgent);
  book_.SetUrgent({tick.agent});
  EXPECT_TRUE(Tick(kNow + 1).is_urgent);
  book_.SetUrgent({});
  EXPECT_FALSE(Tick(kNow + 2).is_urgent);
}

}  // namespace
}  // namespace rollcall
