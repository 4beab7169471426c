// SPDX-License-Identifier: Apache-2.0
#include "daemon/jobs/agent_book.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

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

// Each start of an agent has an id of its own.
TEST_F(AgentBookTest, RemembersTheNewestEndedRunsOfAHost) {
  const auto name = [](int i) {
    return AgentName{"node", "node/" + std::to_string(i), kSecondNs / 10, true};
  };
  const auto tick = [this, &name](int i, int64_t now_ns) {
    const AgentBook::Origin origin = book_.RecordTick(name(i), now_ns, now_ns);
    book_.Applied(origin);
    return origin.agent;
  };
  std::vector<AgentBook::AgentPtr> agents;
  for (int i = 0; i < 100; ++i) {
    book_.Connected(name(i));
    agents.push_back(tick(i, kNow + i));
    if (i != 1) book_.Disconnected(name(i));
  }
  EXPECT_EQ(book_.TakeForgotten(), 0u) << "the clock must still find them silent";
  tick(1, kNow + 60 * kSecondNs);
  EXPECT_EQ(book_.MarkSilent(kNow + 60 * kSecondNs, kSilentAfter).size(), 99u);
  book_.Connected(name(100));
  book_.Disconnected(name(100));
  EXPECT_EQ(book_.TakeForgotten(), 36u);  // 100 have ended
  EXPECT_TRUE(book_.Heard({agents[0]}).front().silent);
  EXPECT_FALSE(book_.Heard({agents[1]}).front().silent) << "it is connected";
  EXPECT_NE(tick(0, kNow + 61 * kSecondNs), agents[0]);
  EXPECT_EQ(tick(99, kNow + 61 * kSecondNs), agents[99]);
}

// No other agent would show that its host is lost.
TEST_F(AgentBookTest, ForgetsNoAgentThatIsNotYetSilentHoweverManyAreGone) {
  constexpr int kAgents = 200'010;
  for (int i = 0; i < kAgents; ++i) {
    const std::string host = "node-" + std::to_string(i);
    const AgentName name = {host, host + "/1", kSecondNs / 10, true};
    book_.Connected(name);
    book_.Applied(book_.RecordTick(name, kNow, kNow));
    book_.Disconnected(name);
  }
  EXPECT_EQ(book_.TakeForgotten(), 0u);
  EXPECT_EQ(book_.MarkSilent(kNow + 60 * kSecondNs, kSilentAfter).size(),
            static_cast<size_t>(kAgents));
  book_.Connected(agent_);
  book_.Disconnected(agent_);
  EXPECT_EQ(book_.TakeForgotten(), 11u);
}

// The book remembers many of them for an hour.
TEST_F(AgentBookTest, LooksNoMoreAtRunsThatAreOver) {
  const auto name = [](int i) {
    const std::string host = "node-" + std::to_string(i);
    return AgentName{host, host + "/1", kSecondNs / 10, true};
  };
  std::vector<AgentBook::AgentPtr> agents;
  for (int i = 0; i < 10; ++i) {
    book_.Connected(name(i));
    if (i == 9) break;  // it never ticks
    agents.push_back(book_.RecordTick(name(i), kNow, kNow).agent);
    book_.Applied({agents.back(), kNow, 0, kNow});
  }
  for (int i = 1; i < 10; ++i) book_.Disconnected(name(i));
  book_.MarkSilent(kNow + kSecondNs, kSilentAfter);
  EXPECT_EQ(book_.watched(), 9u) << "they may fall silent";
  EXPECT_EQ(book_.MarkSilent(kNow + 60 * kSecondNs, kSilentAfter).size(), 9u);
  EXPECT_EQ(book_.watched(), 1u) << "one is connected";
  EXPECT_TRUE(book_.Heard({agents[1]}).front().silent);
  // One comes back.
  book_.Connected(name(1));
  book_.Applied(book_.RecordTick(name(1), kNow + 61 * kSecondNs, kNow + 61 * kSecondNs));
  book_.MarkSilent(kNow + 61 * kSecondNs, kSilentAfter);
  EXPECT_EQ(book_.watched(), 2u);
  EXPECT_FALSE(book_.Heard({agents[1]}).front().silent);
}

TEST_F(AgentBookTest, ForgetsRunsThatWereOverLongAgo) {
  book_.Connected(agent_);
  const AgentBook::Origin first = Tick(kNow);
  book_.Applied(first);
  book_.Disconnected(agent_);
  book_.MarkSilent(kNow + 60 * kSecondNs, kSilentAfter);
  EXPECT_EQ(book_.watched(), 0u);
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

TEST_F(AgentBookTest, WhatTwoAgentsOfAHostLeaveOutIsCountedOnce) {
  const AgentBook::Origin one = Tick(kNow);
  const AgentBook::Origin other =
      book_.RecordTick({"node", "node/2", kSecondNs / 10, true}, kNow, kNow);
  const auto record = [this](const AgentBook::Origin& origin, uint64_t streams, uint64_t segments) {
    const AgentBook::LeftOut fresh = book_.RecordLeftOut(origin, {streams, segments});
    return std::make_pair(fresh.broken_streams, fresh.segments);
  };
  using Pair = std::pair<uint64_t, uint64_t>;
  EXPECT_EQ(record(one, 5, 2), Pair(5, 2));
  EXPECT_EQ(record(other, 1, 1), Pair(1, 1));
  EXPECT_EQ(record(one, 5, 2), Pair(0, 0));
  EXPECT_EQ(record(other, 1, 1), Pair(0, 0));
  EXPECT_EQ(record(one, 6, 3), Pair(1, 1));
}

TEST_F(AgentBookTest, TheNewestListSaysWhichAgentsAreUrgent) {
  const AgentBook::Origin tick = Tick(kNow);
  EXPECT_FALSE(tick.is_urgent);
  book_.SetUrgent({tick.agent});
  EXPECT_TRUE(Tick(kNow + 1).is_urgent);
  book_.SetUrgent({});
  EXPECT_FALSE(Tick(kNow + 2).is_urgent);
}

// Ticks of 100 agents, one each second; `late_ns` later from the fifth second on.
class ManyAgentsTest : public testing::Test {
 protected:
  static constexpr int kAgents = 100;

  // Ticks of the first `count` agents.
  void Ticks(int count, int64_t now_ns) {
    for (int i = 0; i < count; ++i) {
      const AgentName name = {"node", "node/" + std::to_string(i), kSecondNs, false};
      if (!connected_) book_.Connected(name);
      book_.Applied(book_.RecordTick(name, now_ns, now_ns));
    }
    connected_ = true;
  }

  AgentBook book_;
  bool connected_ = false;
};

TEST_F(ManyAgentsTest, AHostWithoutTicksIsSilentAmongOthersThatTick) {
  for (int i = 0; i < 12; ++i) Ticks(i == 0 ? kAgents : kAgents - 1, kNow + i * kSecondNs);
  EXPECT_EQ(book_.MarkSilent(kNow + 11 * kSecondNs, kSilentAfter).size(), 1u);
}

// A daemon without room for its load reads every agent's ticks late, and some later than others.
TEST_F(ManyAgentsTest, DoesNotCallAHostSilentWhileAllTicksComeLate) {
  int64_t now_ns = kNow;
  for (int i = 0; i < 5; ++i, now_ns += 5 * kSecondNs) {
    Ticks(i < 3 ? kAgents : kAgents - 1, now_ns);
    EXPECT_TRUE(book_.MarkSilent(now_ns, kSilentAfter).empty());
  }
  EXPECT_EQ(book_.UsualLateness(now_ns, 0.5), 4 * kSecondNs);
  // 30 s after its last tick: ten seconds, and four times the usual delay.
  EXPECT_EQ(book_.MarkSilent(kNow + 37 * kSecondNs, kSilentAfter).size(), 1u);
}

TEST_F(ManyAgentsTest, ANewPaceMakesNoTickLate) {
  Ticks(kAgents, kNow);
  for (int i = 0; i < kAgents; ++i) book_.SetPace("node/" + std::to_string(i), 5 * kSecondNs);
  Ticks(kAgents, kNow + 5 * kSecondNs);
  for (int i = 0; i < kAgents; ++i) book_.SetPace("node/" + std::to_string(i), kSecondNs);
  Ticks(kAgents, kNow + 10 * kSecondNs);
  EXPECT_EQ(book_.UsualLateness(kNow + 10 * kSecondNs, 0.9), 0);
}

}  // namespace
}  // namespace rollcall
